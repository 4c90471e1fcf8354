//! Full disks, damaged files, and files from elsewhere.

use super::*;

#[tokio::test]
async fn on_a_full_disk_nothing_begins_and_what_has_begun_can_end() {
    let machine = Machine::new();
    let process = machine.start("p1");
    let mut tickets = Vec::new();
    machine.disk.fill(true);
    // There is room for some: it was allocated ahead.
    let refusal = loop {
        // As long as an id may be: end and ack together need more than is kept for the end.
        let call = format!("key-{:0124}", tickets.len());
        match process.begin(&machine, &call).await {
            (Begun::Yes, ticket) => tickets.push((call, ticket)),
            (Begun::Refused(refusal), _) => break refusal,
            (other, _) => panic!("{other:?}"),
        }
    };
    assert_eq!(refusal, Refusal::NoRoom);
    let failure = Failure::from(refusal);
    assert_eq!((failure.code, failure.outcome), (ErrorCode::StorageFull, Outcome::NotRun));
    assert!(failure.hint.is_some() && failure.retry_after_ms.is_none(), "to wait does not help");
    assert!(tickets.len() > 100, "{} have begun", tickets.len());
    let allocated = std::fs::metadata(machine.file("p1")).unwrap().len();
    for (call, ticket) in &tickets {
        // An ack gives way to the ends of others.
        process.ended(&machine, call, *ticket, Outcome::Completed);
        process.acked(call);
    }
    process.journal.flush().await;
    assert_eq!(std::fs::metadata(machine.file("p1")).unwrap().len(), allocated, "all of that found room");
    let found = machine.found_after_a_kill();
    assert_eq!(found.len(), tickets.len());
    assert!(found.values().all(|entry| entry.outcome == Some(Outcome::Completed)));

    machine.disk.fill(false);
    process.begins(&machine, "key-more").await;
    process.end();
}

#[tokio::test]
async fn a_disk_that_is_full_at_the_start_is_asked_again() {
    let machine = Machine::new();
    machine.disk.fill(true);
    let process = machine.start("p1");
    assert_eq!(process.refused(&machine, "key-1").await, Refusal::NoRoom);
    machine.disk.fill(false);
    process.runs(&machine, "key-1").await;
    process.end();
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 completed"]);
}

#[tokio::test]
async fn a_start_that_could_not_be_synced_did_not_happen() {
    let machine = Machine::new();
    let process = machine.start("p1");
    let open = process.begins(&machine, "key-open").await;
    machine.disk.fail_next_sync();
    assert!(matches!(process.refused(&machine, "key-1").await, Refusal::Unavailable(_)));
    // What was written then may or may not be there. A new file takes the place of the old one.
    process.ended(&machine, "key-open", open, Outcome::Completed);
    process.journal.flush().await;
    assert_eq!(told(&machine.found_after_a_kill()), ["key-open completed"]);
    process.runs(&machine, "key-1").await;
    process.end();
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 completed", "key-open completed"]);
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_tried_again() {
    let machine = Machine::new();
    std::fs::write(machine.folder(), "in the way").unwrap();
    let process = machine.start("p1");
    assert!(matches!(process.refused(&machine, "key-1").await, Refusal::Unavailable(_)));
    std::fs::remove_file(machine.folder()).unwrap();
    process.runs(&machine, "key-1").await;
    process.end();
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 completed"]);
}

#[tokio::test]
async fn a_file_that_cannot_be_read_might_say_anything() {
    let machine = Machine::new();
    machine.start("p1").end();
    let unreadable = machine.file("p0");
    std::fs::create_dir(&unreadable).unwrap();
    let process = machine.start("p2");
    assert!(matches!(process.refused(&machine, "key-1").await, Refusal::Unavailable(_)));
    std::fs::remove_dir(&unreadable).unwrap();
    process.runs(&machine, "key-1").await;
    process.end();
}

#[tokio::test]
async fn a_damaged_end_costs_what_stood_there() {
    let machine = Machine::new();
    let process = machine.start("p1");
    process.runs(&machine, "key-1").await;
    process.begins(&machine, "key-2").await;
    process.end();
    let whole = std::fs::read(machine.file("p1")).unwrap();
    let used = whole.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for (cut, garbage, expected) in [
        (used, &b"\x20\0\0\0 garbage"[..], &["key-1 completed", "key-2 started"][..]),
        (used - 1, b"", &["key-1 completed"]),
        (used - 1, b"\xff\xff\xff\xff\xff\xff", &["key-1 completed"]),
        (20, b"", &[]),
    ] {
        std::fs::write(machine.file("p1"), [&whole[..cut], garbage].concat()).unwrap();
        assert_eq!(told(&machine.found_after_a_kill()), expected, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_journal_of_another_version_is_left_alone() {
    let machine = Machine::new();
    machine.start("p1").end();
    let theirs = machine.file("later");
    std::fs::write(&theirs, "footbridge-foot-journal-v2\nwhatever").unwrap();
    let process = machine.start("p2");
    process.runs(&machine, "key-1").await;
    process.end();
    assert_eq!(machine.files(), ["later.log", "p2.log"]);
    assert_eq!(std::fs::read(&theirs).unwrap(), b"footbridge-foot-journal-v2\nwhatever");
}

#[tokio::test]
async fn a_call_with_endless_texts_is_refused_and_no_other() {
    let machine = Machine::new();
    let process = machine.start("p1");
    let start = Start { origin: "\u{1}".repeat(600), ..machine.start_of(&id("key-1")) };
    let begun = process.journal.begin(start, process.journal.ticket()).await;
    assert!(matches!(begun, Begun::Refused(Refusal::TooLong)));
    // The longest that is taken, however much JSON makes of it.
    let start = Start { origin: "\u{1}".repeat(500), ..machine.start_of(&id(&"k".repeat(128))) };
    let ticket = process.journal.ticket();
    assert!(matches!(process.journal.begin(start.clone(), ticket).await, Begun::Yes));
    process.journal.ended(start.call.clone(), ticket, Outcome::Completed, Duration::MAX);
    process.end();
    assert_eq!(machine.found_after_a_kill()[&start.call].origin, start.origin);
}

#[tokio::test]
async fn a_file_is_written_anew_when_little_of_it_matters() {
    let machine = Machine::new();
    let process = machine.start("p1");
    process.runs(&machine, "key-1").await;
    let open = process.begins(&machine, "key-2").await;
    for round in 0..4 {
        let names: Vec<String> = (0..1000).map(|n| format!("c-{round}-{n}")).collect();
        futures::future::join_all(names.iter().map(|name| process.runs(&machine, name))).await;
        names.iter().for_each(|name| process.acked(name));
    }
    process.begins(&machine, "key-3").await;
    process.ended(&machine, "key-2", open, Outcome::Unknown);
    process.journal.flush().await;
    let count = records(&machine.file("p1")).len();
    assert!(count < 10_000, "{count} records of 12,000 that were written");
    assert_eq!(machine.files(), ["p1.log"]);
    assert_eq!(told(&machine.found_after_a_kill()), ["key-1 completed", "key-2 unknown", "key-3 started"]);
    process.end();
}

#[test]
fn the_end_of_any_call_fits_the_room_that_is_kept_for_it() {
    let until = entry::Until { wall_ms: u64::MAX, boot_ms: u64::MAX };
    let end = record::Record::Ended { call: id(&"c".repeat(128)), outcome: Outcome::Completed, until };
    let mut bytes = Vec::new();
    record::Framer::new([0; record::SALT_BYTES]).add(&end, u64::MAX / 2, &mut bytes).unwrap();
    assert!(bytes.len() as u64 <= log::END_BYTES, "{} bytes", bytes.len());
}
