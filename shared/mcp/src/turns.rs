//! Turns: whoever reads a lot lets others run in between.

/// From so many bytes on, what was read costs a whole turn.
const BYTES_OF_A_TURN: usize = 16 * 1024;

/// Ends the turn of the task that runs if it lasted long, after `bytes` were read and handled. Whatever has to be read is
/// there already when the other side is quick, and then nothing else ends it: neither other tasks nor what waits for the
/// network would get on.
pub(crate) async fn after(bytes: usize) {
    if bytes < BYTES_OF_A_TURN {
        tokio::task::consume_budget().await;
    } else {
        tokio::task::yield_now().await;
    }
}
