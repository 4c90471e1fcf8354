//! The public names of feet, their tools and their MCP servers: pure functions of everything that one subject sees. The same feet give the
//! same names, in whatever order they came.

use std::collections::{BTreeMap, HashMap, HashSet};

use footbridge_shared::id::{EntryName, FootName, MAX_NAME_BYTES, PACK_SEPARATOR, Subject, ToolName};

/// Hexadecimal digits that tell two feet of one name apart.
const FOOT_SUFFIX_DIGITS: usize = 6;
/// Hexadecimal digits that tell two tools, or servers, of one name apart.
const TOOL_SUFFIX_DIGITS: usize = 8;
/// Most digits, should even those collide.
const MAX_SUFFIX_DIGITS: usize = 32;

/// The name under which others see a foot that has to be told apart from another subject's.
pub(super) fn told_apart(name: &FootName, owner: &Subject) -> FootName {
    foot_name_with(name, owner, FOOT_SUFFIX_DIGITS).unwrap_or_else(|| name.clone())
}

fn foot_name_with(name: &FootName, owner: &Subject, digits: usize) -> Option<FootName> {
    let hash = blake3::hash(owner.as_str().as_bytes()).to_hex();
    let room = MAX_NAME_BYTES - digits - 1;
    let base = name.as_str().get(..room).unwrap_or(name.as_str()).trim_end_matches(['-', '_']);
    FootName::parse(&format!("{base}-{}", &hash.as_str()[..digits])).ok()
}

/// How one subject sees the feet that others share with it: by their own names, unless that name is also the subject's
/// own (`own`) or another of them has it.
pub(super) fn seen_names(own: &dyn Fn(&str) -> bool, foreign: &[(&Subject, &FootName)]) -> Vec<FootName> {
    let mut count: HashMap<&FootName, usize> = HashMap::new();
    for (_, name) in foreign {
        *count.entry(name).or_default() += 1;
    }
    let clear = |name: &FootName| !own(name.as_str()) && count.get(name) == Some(&1);
    let mut taken: HashSet<FootName> =
        foreign.iter().map(|(_, name)| (*name).clone()).filter(|name| clear(name)).collect();
    let mut seen = vec![None; foreign.len()];
    // By owner, so that the order in which feet came decides nothing.
    let mut order: Vec<usize> = (0..foreign.len()).collect();
    order.sort_by_key(|&index| foreign[index]);
    for index in order {
        let (owner, name) = foreign[index];
        seen[index] = if clear(name) {
            Some(name.clone())
        } else {
            (FOOT_SUFFIX_DIGITS..=MAX_SUFFIX_DIGITS)
                .filter_map(|digits| foot_name_with(name, owner, digits))
                .find(|candidate| !own(candidate.as_str()) && taken.insert(candidate.clone()))
        };
    }
    seen.into_iter().zip(foreign).map(|(seen, (_, name))| seen.unwrap_or_else(|| (*name).clone())).collect()
}

/// A name of something on a foot, of which there is a form that says which foot that is.
pub(super) trait LocalName: Ord + Clone {
    /// Stands between the foot and the name in that form.
    const SEPARATOR: &'static str;

    /// `None`: the rule of such names does not allow it.
    fn parse(name: &str) -> Option<Self>;

    fn as_str(&self) -> &str;
}

impl LocalName for ToolName {
    const SEPARATOR: &'static str = PACK_SEPARATOR;

    fn parse(name: &str) -> Option<Self> {
        Self::parse(name).ok()
    }

    fn as_str(&self) -> &str {
        self.as_str()
    }
}

/// Of an MCP server: the pack of its tools, whose name holds no `__`.
impl LocalName for EntryName {
    const SEPARATOR: &'static str = "_";

    fn parse(name: &str) -> Option<Self> {
        Self::parse(name).ok()
    }

    fn as_str(&self) -> &str {
        self.as_str()
    }
}

/// What one foot brings to a listing.
#[derive(Debug, Clone)]
pub(super) struct Offer<'a, N> {
    /// As the subject sees it.
    pub(super) seen: &'a FootName,
    pub(super) owner: &'a Subject,
    /// Whether it is the subject's own.
    pub(super) own: bool,
    /// Whether it can be called. A foot that is away holds its names, and has them back when it returns.
    pub(super) here: bool,
    /// The names on the foot, sorted.
    pub(super) locals: Vec<&'a N>,
}

/// What a public name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target<'a, N> {
    /// Index of the offer.
    pub(super) offer: usize,
    pub(super) local: &'a N,
}

/// Public names, and those that could not be given as they should be.
#[derive(Debug)]
pub(super) struct PublicNames<'a, N> {
    pub(super) names: BTreeMap<N, Target<'a, N>>,
    /// Names that more than one would have had.
    pub(super) collisions: Vec<String>,
}

/// Names everything that the offers hold, which come in order of precedence: each tool is `<foot>__<tool>`, each server
/// `<foot>_<server>`, and the first to offer a bare name has that, too. Of one owner's names a bare one beats a qualified one
/// that is spelled the same; the subject's own names, both kinds, beat all others: nobody can take over a call that is meant
/// for the subject's own foot, not even while that is away.
pub(super) fn public_names<'a, N: LocalName>(offers: &[Offer<'a, N>]) -> PublicNames<'a, N> {
    let mut public = PublicNames { names: BTreeMap::new(), collisions: Vec::new() };
    for own in [true, false] {
        for here in [true, false] {
            public.give_bare(offers, |offer| offer.own == own && offer.here == here);
        }
        public.give_qualified(offers, |offer| offer.own == own);
    }
    public.names.retain(|_, target| offers[target.offer].here);
    public
}

impl<'a, N: LocalName> PublicNames<'a, N> {
    /// Gives what some feet have its own names, as far as those are free.
    fn give_bare(&mut self, offers: &[Offer<'a, N>], of: impl Fn(&Offer<'a, N>) -> bool) {
        for (offer, Offer { locals, .. }) in offers.iter().enumerate().filter(|(_, offer)| of(offer)) {
            for local in locals {
                self.names.entry((*local).clone()).or_insert(Target { offer, local });
            }
        }
    }

    /// Gives each thing on some feet a name that says which foot it is on.
    fn give_qualified(&mut self, offers: &[Offer<'a, N>], of: impl Fn(&Offer<'a, N>) -> bool) {
        let mut qualified: BTreeMap<String, Vec<Target<'a, N>>> = BTreeMap::new();
        for (offer, Offer { seen, locals, .. }) in offers.iter().enumerate().filter(|(_, offer)| of(offer)) {
            let prefix = seen.tool_prefix();
            for local in locals {
                let wanted = [prefix.as_str(), N::SEPARATOR, local.as_str()].concat();
                qualified.entry(wanted).or_default().push(Target { offer, local });
            }
        }
        for (wanted, targets) in qualified {
            let parsed = N::parse(&wanted);
            let contested = targets.len() > 1 || parsed.as_ref().is_some_and(|name| self.names.contains_key(name));
            if contested {
                self.collisions.push(wanted.clone());
            }
            for target in targets {
                let name = match &parsed {
                    Some(name) if !contested => Some(name.clone()),
                    _ => suffixed(&wanted, &offers[target.offer], target.local, &|name| self.names.contains_key(name)),
                };
                if let Some(name) = name {
                    self.names.insert(name, target);
                }
            }
        }
    }
}

/// A name that is too long or taken, with a suffix that only depends on whose it is.
fn suffixed<N: LocalName>(wanted: &str, offer: &Offer<'_, N>, local: &N, taken: &dyn Fn(&N) -> bool) -> Option<N> {
    let identity = [offer.owner.as_str(), offer.seen.as_str(), local.as_str()].join("\0");
    let hash = blake3::hash(identity.as_bytes()).to_hex();
    (TOOL_SUFFIX_DIGITS..=MAX_SUFFIX_DIGITS).find_map(|digits| {
        let room = MAX_NAME_BYTES - digits - 1;
        let base = wanted.get(..room).unwrap_or(wanted).trim_end_matches('_');
        N::parse(&format!("{base}_{}", &hash.as_str()[..digits])).filter(|name| !taken(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn foot(name: &str) -> FootName {
        FootName::parse(name).unwrap()
    }

    fn subject(name: &str) -> Subject {
        Subject::parse(name).unwrap()
    }

    /// Feet given as (seen name, owner, tools), as Ada sees them, all of them here.
    fn offers(feet: &[(FootName, Subject, Vec<ToolName>)]) -> Vec<Offer<'_, ToolName>> {
        let own = |owner: &Subject| owner.as_str() == "ada";
        feet.iter()
            .map(|(seen, owner, tools)| Offer {
                seen,
                owner,
                own: own(owner),
                here: true,
                locals: tools.iter().collect(),
            })
            .collect()
    }

    /// Names the tools of those feet.
    fn name_all(feet: &[(FootName, Subject, Vec<ToolName>)]) -> (BTreeMap<String, (usize, String)>, Vec<String>) {
        let PublicNames { names, collisions } = public_names(&offers(feet));
        let names = names.into_iter().map(|(name, t)| (name.to_string(), (t.offer, t.local.to_string()))).collect();
        (names, collisions)
    }

    fn feet(spec: &[(&str, &str, &[&str])]) -> Vec<(FootName, Subject, Vec<ToolName>)> {
        let tools = |names: &[&str]| names.iter().map(|name| ToolName::parse(name).unwrap()).collect();
        spec.iter().map(|(name, owner, names)| (foot(name), subject(owner), tools(names))).collect()
    }

    #[test]
    fn the_first_foot_has_the_bare_name_and_every_tool_a_qualified_one() {
        let (names, collisions) =
            name_all(&feet(&[("dev-laptop", "ada", &["build", "uptime"]), ("ci", "ada", &["build", "git__log"])]));
        let expected = [
            ("build", 0, "build"),
            ("ci__build", 1, "build"),
            ("ci__git__log", 1, "git__log"),
            ("dev_laptop__build", 0, "build"),
            ("dev_laptop__uptime", 0, "uptime"),
            ("git__log", 1, "git__log"),
            ("uptime", 0, "uptime"),
        ];
        let expected = expected.map(|(name, foot, local)| (name.to_owned(), (foot, local.to_owned())));
        assert_eq!(names, expected.into_iter().collect());
        assert!(collisions.is_empty());
    }

    #[test]
    fn names_that_would_be_spelled_the_same_are_told_apart_by_what_they_stand_for() {
        // `a-b` and `a_b` have one prefix; `a--b` has it, too; the pack `ci` beats the foot `ci`.
        for spec in [
            feet(&[("a-b", "ada", &["x"]), ("a_b", "ada", &["x"])]),
            feet(&[("a--b", "ada", &["x"]), ("a_b-", "ada", &["x"])]),
            feet(&[("ci", "ada", &["log"]), ("dev", "ada", &["ci__log"])]),
        ] {
            let (names, collisions) = name_all(&spec);
            assert!(!collisions.is_empty(), "{names:?}");
            let mut reversed = spec.clone();
            reversed.reverse();
            let (mirrored, _) = name_all(&reversed);
            let qualified = |names: &BTreeMap<String, (usize, String)>, spec: &[(FootName, Subject, Vec<ToolName>)]| {
                let of = |(name, (offer, local)): (&String, &(usize, String))| {
                    (name.clone(), spec[*offer].0.clone(), local.clone())
                };
                names.iter().map(of).filter(|(name, _, local)| name != local).collect::<Vec<_>>()
            };
            assert_eq!(qualified(&names, &spec), qualified(&mirrored, &reversed), "the order decides nothing");
            for (index, (_, _, tools)) in spec.iter().enumerate() {
                for tool in tools {
                    let own = |(name, target): (&String, &(usize, String))| {
                        *target == (index, tool.to_string()) && name != tool.as_str()
                    };
                    assert_eq!(names.iter().filter(|entry| own(*entry)).count(), 1, "{tool} of {index}: {names:?}");
                }
            }
        }
        let (names, _) = name_all(&feet(&[("ci", "ada", &["log"]), ("dev", "ada", &["ci__log"])]));
        assert_eq!(names["ci__log"], (1, "ci__log".to_owned()), "the bare name of a pack's tool wins");
    }

    #[test]
    fn no_foreign_tool_is_spelled_like_one_of_the_subjects_own() {
        let (names, collisions) = name_all(&feet(&[
            ("laptop", "ada", &["file_read"]),
            ("aaa", "mallory", &["laptop__file_read", "file_read"]),
        ]));
        assert_eq!(names["file_read"], (0, "file_read".to_owned()));
        assert_eq!(names["laptop__file_read"], (0, "file_read".to_owned()), "the foreign bare name comes after it");
        assert_eq!(names["aaa__laptop__file_read"], (1, "laptop__file_read".to_owned()));
        assert!(collisions.is_empty(), "{collisions:?}");
        // `lap-top` and `lap_top` have one prefix; the foreign one is told apart, the own one is not.
        let (names, collisions) =
            name_all(&feet(&[("lap-top", "ada", &["file_read"]), ("lap_top", "mallory", &["file_read"])]));
        assert_eq!(names["lap_top__file_read"], (0, "file_read".to_owned()));
        assert_eq!((names.len(), collisions.as_slice()), (3, &["lap_top__file_read".to_owned()][..]));
    }

    #[test]
    fn a_foot_that_is_away_holds_its_names_against_others_but_not_against_its_owners_own() {
        let spec = feet(&[
            ("laptop", "ada", &["file_read", "uptime"]),
            ("tower", "ada", &["uptime"]),
            ("aaa", "mallory", &["file_read", "laptop__file_read", "uptime"]),
        ]);
        let mut offers: Vec<_> = offers(&spec);
        offers[0].here = false;
        let names = public_names(&offers).names;
        let shown: Vec<(&str, usize)> = names.iter().map(|(name, target)| (name.as_str(), target.offer)).collect();
        assert_eq!(
            shown,
            [
                ("aaa__file_read", 2),
                ("aaa__laptop__file_read", 2),
                ("aaa__uptime", 2),
                ("tower__uptime", 1),
                ("uptime", 1)
            ]
        );
    }

    #[test]
    fn a_long_name_is_cut_and_stays_unique() {
        let long = "a".repeat(64);
        let spec = feet(&[("dev", "ada", &[&long, &format!("{}b", "a".repeat(63))])]);
        let (names, collisions) = name_all(&spec);
        assert_eq!(names.len(), 4);
        assert!(collisions.is_empty() && names.keys().all(|name| name.len() <= 64));
        assert_eq!(names, name_all(&spec).0);
    }

    #[test]
    fn servers_are_named_as_tools_are_with_one_underscore() {
        let entries = |names: &[&str]| names.iter().map(|name| EntryName::parse(name).unwrap()).collect::<Vec<_>>();
        let long = ["a".repeat(60), format!("{}_b", "a".repeat(47))];
        let (laptop, tower, shared) =
            (entries(&["db", "git"]), entries(&["git", &long[0]]), entries(&["git", &long[1]]));
        let (ada, bob) = (subject("ada"), subject("bob"));
        let (laptop_1, tower_foot, other) = (foot("laptop-1"), foot("tower"), foot("bobs"));
        let offer = |seen, owner, own, here, locals| Offer { seen, owner, own, here, locals };
        let mut offers = vec![
            offer(&laptop_1, &ada, true, true, laptop.iter().collect()),
            offer(&tower_foot, &ada, true, true, tower.iter().collect()),
            offer(&other, &bob, false, true, shared.iter().collect::<Vec<_>>()),
        ];
        let names = |offers: &[Offer<'_, EntryName>]| {
            let PublicNames { names, .. } = public_names(offers);
            names.into_iter().map(|(name, target)| (name.to_string(), target.offer)).collect::<BTreeMap<_, _>>()
        };
        let named = names(&offers);
        for (name, offer) in [("git", 0), ("db", 0), ("laptop_1_git", 0), ("tower_git", 1), ("bobs_git", 2)] {
            assert_eq!(named.get(name), Some(&offer), "{name}: {named:?}");
        }
        assert_eq!(named.len(), 2 * 6 - 2, "each has a name of its own: {named:?}");
        offers[0].here = false;
        let named = names(&offers);
        assert_eq!(
            (named.get("git"), named.get("db")),
            (Some(&1), None),
            "held against others, not against the owner's"
        );
    }

    #[test]
    fn a_shared_foot_has_its_own_name_unless_that_is_taken() {
        let own = |name: &str| name == "dev";
        let (ada, bob) = (subject("ada"), subject("bob"));
        let (dev, ci, lab) = (foot("dev"), foot("ci"), foot("lab"));
        let seen = seen_names(&own, &[(&ada, &dev), (&ada, &lab), (&ada, &ci), (&bob, &ci)]);
        assert_eq!(seen[0], told_apart(&dev, &ada));
        assert_eq!(seen[1], lab);
        assert_ne!(seen[2], seen[3]);
        assert!(seen[2..].iter().all(|name| name.as_str().starts_with("ci-")));
        let alone = seen_names(&|_| false, &[(&ada, &dev)]);
        assert_eq!(alone, [dev]);
    }

    proptest! {
        #[test]
        fn every_tool_of_every_foot_can_be_addressed(
            spec in prop::collection::btree_map("[a-b]([a-b_-]{0,3}[a-b])?", prop::collection::btree_set("[a-b](_{0,2}[a-b]){0,3}", 0..6), 0..5)
        ) {
            let feet: Vec<_> = spec
                .iter()
                .filter_map(|(name, tools)| Some((FootName::parse(name).ok()?, subject("ada"), tools.iter().filter_map(|t| ToolName::parse(t).ok()).collect::<Vec<_>>())))
                .collect();
            let (names, _) = name_all(&feet);
            for (index, (_, _, tools)) in feet.iter().enumerate() {
                for tool in tools {
                    let target = (index, tool.to_string());
                    let ways = names.iter().filter(|(_, t)| **t == target).count();
                    prop_assert!((1..=2).contains(&ways), "{} of {}: {:?}", tool, index, names);
                    prop_assert!(names.iter().any(|(name, t)| *t == target && name != tool.as_str()));
                }
            }
        }
    }
}
