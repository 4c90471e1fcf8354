//! Protocol versions and their negotiation in `Sec-WebSocket-Protocol`.

/// The subprotocol this build speaks.
pub const FOOTBRIDGE_V1: &str = "footbridge.v1";

/// All subprotocols this build speaks, best first.
pub const SUPPORTED: [&str; 1] = [FOOTBRIDGE_V1];

/// Picks the best version that both sides speak from a `Sec-WebSocket-Protocol` header value.
///
/// `None` means that there is no common version; the hub then answers HTTP 400 and lists [`SUPPORTED`].
pub fn negotiate(offered: &str) -> Option<&'static str> {
    SUPPORTED.into_iter().find(|ours| offered.split(',').any(|theirs| theirs.trim() == *ours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_common_version_wins() {
        assert_eq!(negotiate("footbridge.v9, footbridge.v1"), Some(FOOTBRIDGE_V1));
        assert_eq!(negotiate("footbridge.v10"), None);
        assert_eq!(negotiate(""), None);
    }
}
