//! Public names of a pack's tools: `<pack>__<tool>`, `[a-z0-9_]`, at most 64 characters, whatever the tools are called.
//!
//! A pure function of the whole listing: the same names in any order, after a restart, give the same result. Nothing is
//! ever taken apart again: the catalog maps each public name to the tool it stands for.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::{EntryName, MAX_NAME_BYTES, PACK_SEPARATOR, ToolName};

/// Longest part of a pack's name that stands in its tools' names whole; a longer one is cut and gets a hash.
const MAX_PREFIX: usize = 40;
/// Hex digits of a hash suffix: enough that two names of one pack hardly ever share it.
const HASH_DIGITS: usize = 8;
/// Before the name of a pack that would begin with a digit.
const OTHER_NAME: &str = "mcp_";
/// Hex digits of a whole hash.
const ALL_DIGITS: usize = 64;

/// The public name of each of a pack's tools, by the name it has where it comes from.
///
/// A name that is legal as it stands keeps its form. Others are put into form; those that would then be equal, or are too
/// long, get a hash of their own name as suffix.
pub fn public_names<'a>(pack: &EntryName, originals: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, ToolName> {
    let originals: BTreeSet<&str> = originals.into_iter().collect();
    let prefix = format!("{}{PACK_SEPARATOR}", shortened(pack.as_str(), MAX_PREFIX, pack.as_str()));
    let room = MAX_NAME_BYTES - prefix.len();
    let forms: BTreeMap<&str, String> = originals.into_iter().map(|original| (original, form(original))).collect();

    let mut wanted: BTreeMap<&str, usize> = BTreeMap::new();
    for form in forms.values() {
        *wanted.entry(form).or_default() += 1;
    }
    let keeps_form = |original: &str, form: &str| {
        (1..=room).contains(&form.len())
            && (form == original || (wanted.get(form) == Some(&1) && !forms.contains_key(form)))
    };
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let mut locals: BTreeMap<&str, String> = BTreeMap::new();
    for (original, form) in forms.iter().filter(|(original, form)| keeps_form(original, form)) {
        taken.insert(form.clone());
        locals.insert(original, form.clone());
    }
    for (original, form) in &forms {
        if !locals.contains_key(original) {
            let local = suffixed(form, original, room, &taken);
            taken.insert(local.clone());
            locals.insert(original, local);
        }
    }
    locals
        .into_iter()
        .filter_map(|(original, local)| Some((original, ToolName::parse(&format!("{prefix}{local}")).ok()?)))
        .collect()
}

/// The name of a pack that is called something else where it comes from: `@scope/server-git` becomes `scope_server_git`.
/// A name that is one already stays as it is. `None`: there is no letter or digit in it.
pub fn pack_name(original: &str) -> Option<EntryName> {
    if let Ok(name) = EntryName::parse(original) {
        return Some(name);
    }
    let form = form(original);
    let words: Vec<&str> = form.split('_').filter(|word| !word.is_empty()).collect();
    let joined = words.join("_");
    let name = if joined.starts_with(|c: char| c.is_ascii_digit()) { format!("{OTHER_NAME}{joined}") } else { joined };
    EntryName::parse(&shortened(&name, MAX_NAME_BYTES, original)).ok()
}

/// Lower case with `_` between words: `listPets`, `list.pets` and `list pets` all become `list_pets`. A name that holds
/// nothing else keeps its underscores, save those at its ends, which would blur where the pack's name ends.
fn form(original: &str) -> String {
    let legal = original.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'));
    if legal {
        return original.trim_matches('_').to_owned();
    }
    let chars: Vec<char> = original.chars().collect();
    let mut form = String::new();
    for (index, c) in chars.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|index| chars.get(index));
        let starts_word = c.is_ascii_uppercase()
            && before.is_some_and(|before| {
                let after_lower = before.is_ascii_lowercase() || before.is_ascii_digit();
                let ends_capitals =
                    before.is_ascii_uppercase() && chars.get(index + 1).is_some_and(char::is_ascii_lowercase);
                after_lower || ends_capitals
            });
        let letter = c.is_ascii_alphanumeric();
        if (starts_word || !letter) && !form.is_empty() && !form.ends_with('_') {
            form.push('_');
        }
        if letter {
            form.push(c.to_ascii_lowercase());
        }
    }
    form.trim_end_matches('_').to_owned()
}

/// A form with the hash of the original name, cut to fit, and not taken.
fn suffixed(form: &str, original: &str, room: usize, taken: &BTreeSet<String>) -> String {
    let hash = blake3::hash(original.as_bytes()).to_hex();
    let longest = ALL_DIGITS.min(room);
    (HASH_DIGITS..=longest)
        .map(|digits| with_hash(form, &hash[..digits], room))
        .find(|local| !taken.contains(local))
        // Two names with the same hash: there is no such pair.
        .unwrap_or_else(|| hash[..longest].to_owned())
}

fn with_hash(form: &str, hash: &str, room: usize) -> String {
    let head =
        form.get(..room.saturating_sub(hash.len() + 1).min(form.len())).unwrap_or_default().trim_end_matches('_');
    if head.is_empty() { hash.to_owned() } else { format!("{head}_{hash}") }
}

/// A legal name, cut with a hash when it is too long.
fn shortened(name: &str, room: usize, original: &str) -> String {
    if name.len() <= room {
        return name.to_owned();
    }
    with_hash(name, &blake3::hash(original.as_bytes()).to_hex()[..HASH_DIGITS], room)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(pack: &str, originals: &[&str]) -> Vec<String> {
        let pack = EntryName::parse(pack).unwrap();
        let names = public_names(&pack, originals.iter().copied());
        originals.iter().map(|original| names[original].to_string()).collect()
    }

    #[test]
    fn names_that_no_provider_accepts_become_names_that_all_accept() {
        assert_eq!(
            names(
                "warehouse_reporting_internal",
                &[
                    "stock.level",
                    "stock level by site",
                    "rapport/été",
                    "synchronise_all_open_replenishment_orders_for_every_site",
                ]
            ),
            [
                "warehouse_reporting_internal__stock_level",
                "warehouse_reporting_internal__stock_level_by_site",
                "warehouse_reporting_internal__rapport_t",
                "warehouse_reporting_internal__synchronise_all_open_repl_f3b0c6c1",
            ]
        );
        assert_eq!(
            names("api", &["listPets", "getHTTPResponse", "GET /pets/{id}", "v2Users"]),
            ["api__list_pets", "api__get_http_response", "api__get_pets_id", "api__v2_users"]
        );
    }

    #[test]
    fn a_pack_that_is_called_something_else_gets_a_legal_name() {
        let name = |original: &str| pack_name(original).map(|name| name.to_string());
        for (original, expected) in [
            ("github", "github"),
            ("@scope/server-git", "scope_server_git"),
            ("My Server", "my_server"),
            ("a__b", "a_b"),
            ("1password", "mcp_1password"),
            ("_x_", "x"),
        ] {
            assert_eq!(name(original).as_deref(), Some(expected), "{original}");
        }
        assert_eq!(name("漢字"), None);
        let (a, b) = (name(&"a".repeat(80)).unwrap(), name(&"a".repeat(81)).unwrap());
        assert!(a.len() <= MAX_NAME_BYTES && a != b);
    }

    #[test]
    fn a_legal_name_stays_as_it_is() {
        assert_eq!(names("crm", &["eu__find", "ping", "_hidden_"])[..2], ["crm__eu__find", "crm__ping"]);
    }

    #[test]
    fn collisions_get_a_suffix_and_the_legal_name_keeps_its_own() {
        let found = names("p", &["list_pets", "listPets", "list.pets", "漢", "字", ""]);
        assert_eq!(found[0], "p__list_pets");
        assert!(found[1].starts_with("p__list_pets_") && found[2].starts_with("p__list_pets_"), "{found:?}");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 6, "{found:?}");
        // The suffix is the name's own: who else collides does not matter.
        assert_eq!(names("p", &["list_pets", "listPets"])[1], found[1]);
    }

    #[test]
    fn a_long_pack_name_leaves_room_and_stays_distinct() {
        let (a, b) = ("a".repeat(64), format!("{}b", "a".repeat(63)));
        let (a, b) = (names(&a, &["find"]), names(&b, &["find"]));
        assert!(a[0].ends_with("__find") && a[0].len() <= 64 && a != b, "{a:?} {b:?}");
    }

    proptest! {
        #[test]
        fn any_listing_gets_distinct_valid_names_in_any_order(
            pack in "[a-z][a-z0-9]{0,63}",
            mut originals in prop::collection::btree_set("[a-cA-C_. é]{0,6}|\\PC{0,80}|a{50,70}", 0..40)
                .prop_map(|set| set.into_iter().collect::<Vec<_>>())
                .prop_shuffle(),
        ) {
            let pack = EntryName::parse(&pack).map_err(|e| TestCaseError::fail(e.to_string()))?;
            let names = public_names(&pack, originals.iter().map(String::as_str));
            prop_assert_eq!(names.len(), originals.len());
            prop_assert_eq!(names.values().collect::<BTreeSet<_>>().len(), originals.len());
            let owned: BTreeMap<String, ToolName> = names.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
            originals.reverse();
            let again = public_names(&pack, originals.iter().map(String::as_str));
            for (original, name) in again {
                prop_assert_eq!(&owned[original], &name);
            }
        }
    }
}
