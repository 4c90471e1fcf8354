//! Randomness from the operating system, for ids, keys and jitter.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// `N` random bytes. A machine without randomness ends the process: nothing that needs it could be trusted.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        std::process::abort();
    }
    bytes
}

/// 128 random bits in base64url without padding.
pub(crate) fn id() -> String {
    URL_SAFE_NO_PAD.encode(bytes::<16>())
}

/// Evenly spread over `0.0..1.0`: the jitter of heartbeats and reconnects.
pub(crate) fn unit() -> f64 {
    f64::from(u32::from_le_bytes(bytes::<4>())) / (f64::from(u32::MAX) + 1.0)
}
