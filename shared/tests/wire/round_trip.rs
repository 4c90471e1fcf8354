//! What one side writes, the other reads, whatever stands in it.

use footbridge_shared::limits::MAX_FRAME_BYTES;
use footbridge_shared::message::{DecodeError, FootToHub, HubToFoot};
use proptest::prelude::*;
use serde_json::value::RawValue;

use crate::arbitrary::{foot_to_hub, hub_to_foot};

/// Raw JSON has no equality of its own; its debug form is its text.
macro_rules! check {
    ($direction:ty, $message:expr) => {{
        let frame = $message.encode();
        if frame.len() > MAX_FRAME_BYTES {
            prop_assert!(matches!(<$direction>::decode_frame(&frame), Err(DecodeError::TooLarge(_))));
        }
        let read = <$direction>::decode(&frame);
        prop_assert!(read.is_ok(), "{read:?}");
        let read = read.unwrap();
        prop_assert_eq!(format!("{:?}", read), format!("{:?}", $message));
        prop_assert_eq!(read.encode(), frame);
    }};
}

proptest! {
    #[test]
    fn of_what_a_foot_says(message in foot_to_hub()) {
        check!(FootToHub, message);
    }

    #[test]
    fn of_what_a_hub_says(message in hub_to_foot()) {
        check!(HubToFoot, message);
    }

    #[test]
    fn no_text_breaks_a_reader(text in any::<String>(), cut in any::<prop::sample::Index>(), message in foot_to_hub()) {
        // Nonsense, and sense that breaks off: an answer, never a panic.
        let _ = (FootToHub::decode(&text), HubToFoot::decode(&text));
        let frame = message.encode();
        let end = frame.floor_char_boundary(cut.index(frame.len()));
        prop_assert!(FootToHub::decode(&frame[..end]).is_err());
    }
}

#[test]
fn a_payload_passes_byte_for_byte() {
    let payload = "{ \"n\" :1.10,\"n\": 1e400 ,\"deep\":[ [ ] ],\"text\":\"\\u00e9\\/\u{e9}\" }";
    let frame =
        format!(r#"{{"type":"result","call":"c","origin":"o","content":[{payload}],"structured": {payload} }}"#);
    let Ok(FootToHub::Result(result)) = FootToHub::decode(&frame) else { panic!("{frame}") };
    assert_eq!(result.content.get(), format!("[{payload}]"));
    assert_eq!(result.structured.as_deref().map(RawValue::get), Some(payload));
    assert_eq!(FootToHub::from(result).encode().matches(payload).count(), 2);
}
