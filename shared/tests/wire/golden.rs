//! One frame a line. A line that has to change breaks feet that are out there: add a field that may be left out instead.

use std::collections::BTreeSet;

use footbridge_shared::message::{FootToHub, HubToFoot};

const FOOT_TO_HUB: &str = include_str!("golden/foot_to_hub.jsonl");
const HUB_TO_FOOT: &str = include_str!("golden/hub_to_foot.jsonl");

macro_rules! check {
    ($direction:ty, $golden:expr) => {
        let mut seen = BTreeSet::new();
        for line in $golden.lines() {
            let message = <$direction>::decode(line).unwrap();
            assert_eq!(message.encode(), line);
            seen.insert(message.kind().to_owned());
        }
        let types: BTreeSet<String> = <$direction>::TYPES.iter().map(|kind| (*kind).to_owned()).collect();
        assert_eq!(seen, types, "every type has a golden frame, and no frame is of a type that is unknown");
    };
}

#[test]
fn what_feet_say() {
    check!(FootToHub, FOOT_TO_HUB);
}

#[test]
fn what_hubs_say() {
    check!(HubToFoot, HUB_TO_FOOT);
}
