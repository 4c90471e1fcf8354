//! Prefixes, order and pages.

use jiff::SignedDuration;

use super::{Subject, path, scope};
use crate::domain::document::DocumentPath;
use crate::domain::scope::Scope;
use crate::store::{Precondition, Store};

pub(in crate::store) async fn paths_come_in_byte_order(Subject { store, .. }: &Subject) {
    // Neither alphabetical, nor by case, nor by UTF-16 unit: there the last one would come before the one ahead of it.
    let in_order = ["A", "B", "a", "a b", "a-b", "a/b", "a0", "aa", "b", "é", "漢", "\u{ff5e}", "\u{1f600}"];
    let main = scope("acme/main");
    for text in in_order.iter().rev() {
        write(&**store, &main, text).await;
    }
    assert_eq!(paths(&**store, &main, "").await, in_order);
}

pub(in crate::store) async fn a_prefix_is_taken_literally(Subject { store, .. }: &Subject) {
    let main = scope("acme/main");
    for text in ["a%b", "a_b", "a*b", "a[x]b", "a?b", "axb", "A%b", "'"] {
        write(&**store, &main, text).await;
    }
    for prefix in ["a%", "a_", "a*", "a[x]", "a?", "A", "'"] {
        let found = paths(&**store, &main, prefix).await;
        assert_eq!(found.len(), 1, "{prefix}: {found:?}");
        assert!(found[0].starts_with(prefix), "{prefix}: {found:?}");
    }
    assert_eq!(paths(&**store, &main, "a").await.len(), 6);
}

pub(in crate::store) async fn a_prefix_covers_its_keys_up_to_the_last_character(Subject { store, .. }: &Subject) {
    let main = scope("acme/main");
    let all = ["kits", "kits/a", "kits0", "kitt", "z", "z\u{d7ff}", "z\u{e000}", "z\u{10ffff}", "\u{10ffff}x"];
    for text in all {
        write(&**store, &main, text).await;
    }
    for prefix in ["", "k", "kits", "kits/", "kits/a", "kits/ab", "z", "z\u{d7ff}", "z\u{10ffff}", "\u{10ffff}", "zz"] {
        let mut wanted: Vec<_> = all.into_iter().filter(|text| text.starts_with(prefix)).collect();
        wanted.sort_unstable();
        assert_eq!(paths(&**store, &main, prefix).await, wanted, "{prefix:?}");
    }
}

pub(in crate::store) async fn pages_follow_each_other_without_gap_or_overlap(Subject { store, .. }: &Subject) {
    let main = scope("acme/main");
    for number in 0..7 {
        write(&**store, &main, &format!("docs/{number}")).await;
    }
    for outside in ["doc", "docs0", "docs"] {
        write(&**store, &main, outside).await;
    }
    for limit in 1..9 {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = store.list(&main, "docs/", after.as_ref(), limit).await.unwrap();
            assert!(page.len() <= limit);
            let Some(last) = page.last() else { break };
            after = Some(last.path.clone());
            seen.extend(page.into_iter().map(|meta| meta.path));
        }
        assert_eq!(seen, (0..7).map(|number| path(&format!("docs/{number}"))).collect::<Vec<_>>(), "pages of {limit}");
    }

    let page = async |after: &str| store.list(&main, "docs/", Some(&path(after)), 2).await.unwrap();
    assert_eq!(store.list(&main, "docs/", None, 0).await.unwrap(), []);
    assert_eq!(store.list(&main, "docs/", None, usize::MAX).await.unwrap().len(), 7);
    assert_eq!(page("a").await[0].path, path("docs/0"), "a mark ahead of the prefix");
    assert_eq!(page("docs/3x").await[0].path, path("docs/4"), "a mark that is no document");
    assert_eq!(page("docs/6").await, [], "the last one");
    assert_eq!(page("z").await, [], "a mark behind the prefix");
}

pub(in crate::store) async fn what_was_deleted_is_not_listed(Subject { store, .. }: &Subject) {
    let main = scope("acme/main");
    for text in ["a", "b", "c", "d"] {
        write(&**store, &main, text).await;
    }
    store.delete(&main, &path("a"), "ada", Precondition::Any).await.unwrap();
    store.delete(&main, &path("c"), "ada", Precondition::Any).await.unwrap();
    assert_eq!(paths(&**store, &main, "").await, ["b", "d"]);
    // A page is not shorter for what was deleted in between, and a mark may be a document that is gone.
    assert_eq!(store.list(&main, "", Some(&path("a")), 2).await.unwrap().len(), 2);
    write(&**store, &main, "c").await;
    assert_eq!(paths(&**store, &main, "").await, ["b", "c", "d"]);
}

pub(in crate::store) async fn sizes_are_bytes_and_times_those_of_the_version(Subject { store, clock }: &Subject) {
    let (main, a) = (scope("acme/main"), path("a"));
    store.put(&main, &a, "first", "ada", Precondition::Any).await.unwrap();
    clock.advance(SignedDuration::from_secs(5));
    let second = store.put(&main, &a, "é漢", "ada", Precondition::Any).await.unwrap();
    let listed = store.list(&main, "", None, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].version, listed[0].bytes, listed[0].updated_at), (2, 5, second.updated_at));
}

pub(in crate::store) async fn reading_all_gives_the_texts_of_what_is_listed(Subject { store, .. }: &Subject) {
    let main = scope("acme/main");
    for text in ["recipes/b", "recipes/a", "recipes0", "recipe", "recipes/gone"] {
        write(&**store, &main, text).await;
    }
    store.put(&main, &path("recipes/a"), "newer", "ada", Precondition::Any).await.unwrap();
    store.delete(&main, &path("recipes/gone"), "ada", Precondition::Any).await.unwrap();
    let all = store.read_all(&main, "recipes/").await.unwrap();
    let read: Vec<_> = all.iter().map(|document| (document.path.as_str(), document.text.as_str())).collect();
    assert_eq!(read, [("recipes/a", "newer"), ("recipes/b", "text of recipes/b")]);
    for document in &all {
        assert_eq!(store.get(&main, &document.path).await.unwrap().as_ref(), Some(document));
    }
    assert_eq!(store.read_all(&scope("acme/unheard-of"), "").await.unwrap(), []);
}

async fn write(store: &dyn Store, scope: &Scope, text: &str) {
    store.put(scope, &path(text), &format!("text of {text}"), "ada", Precondition::Any).await.unwrap();
}

async fn paths(store: &dyn Store, scope: &Scope, prefix: &str) -> Vec<String> {
    let listed = store.list(scope, prefix, None, usize::MAX).await.unwrap();
    listed.iter().map(|meta| DocumentPath::as_str(&meta.path).to_owned()).collect()
}
