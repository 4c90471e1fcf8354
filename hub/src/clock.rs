//! The wall clock and randomness, as parameters, so that tests can choose both.

use std::cell::RefCell;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

#[cfg(test)]
pub(crate) mod manual;

/// Tells the time of day. Elapsed time is tokio's business.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the seam that the rest of the code goes through")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock handed around.
pub type SharedClock = Arc<dyn Clock>;

/// `N` bytes from the operating system's generator.
///
/// # Panics
/// Never; a machine without randomness ends the process, since nothing that needs it could be trusted.
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    if getrandom::fill(&mut bytes).is_err() {
        std::process::abort();
    }
    bytes
}

/// 128 random bits in base64url without padding: ids of calls and sessions.
///
/// Drawn from the operating system many at a time, since each relayed call needs two. Secrets are drawn one by one.
pub fn random_id() -> String {
    /// Random bytes drawn at once: 64 ids.
    const DRAWN_BYTES: usize = 1024;
    thread_local! {
        static DRAWN: RefCell<(usize, [u8; DRAWN_BYTES])> = const { RefCell::new((DRAWN_BYTES, [0; DRAWN_BYTES])) };
    }
    DRAWN.with_borrow_mut(|(used, drawn)| {
        if *used == DRAWN_BYTES {
            (*used, *drawn) = (0, random_bytes());
        }
        let id = URL_SAFE_NO_PAD.encode(&drawn[*used..*used + 16]);
        *used += 16;
        id
    })
}
