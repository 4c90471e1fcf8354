//! Signs of life on their way to the caller, and how much output goes with them.

use footbridge_shared::id::CallId;
use footbridge_shared::message::{FootToHub, Output, Progress, Stream};
use tokio::sync::mpsc;

/// Longest text of one message, in bytes: a result that is no larger than such messages does not overtake them.
const MAX_TEXT_BYTES: usize = 4 * 1024;
/// Time over which the output of a call is measured, in milliseconds.
const WINDOW_MS: u64 = 1_000;
/// Output that is passed on in that time, in bytes. A person reads less, and the whole is kept where it is made.
const WINDOW_BYTES: usize = 128 * 1024;

/// A sign of life.
#[derive(Debug, Clone)]
pub(crate) enum Sign {
    /// How far it is.
    Progress(Progress),
    /// What it wrote.
    Output(Output),
}

impl Sign {
    /// Whose.
    pub(crate) fn call(&self) -> &CallId {
        match self {
            Self::Progress(progress) => &progress.call,
            Self::Output(output) => &output.call,
        }
    }
}

impl From<Sign> for FootToHub {
    fn from(sign: Sign) -> Self {
        match sign {
            Sign::Progress(progress) => progress.into(),
            Sign::Output(output) => output.into(),
        }
    }
}

/// What of a call's output was passed on, and what was not.
#[derive(Debug, Default)]
pub(super) struct Told {
    seq: u64,
    skipped: [u64; 2],
    window_start_ms: u64,
    window_bytes: usize,
}

impl Told {
    /// Passes on as much as goes at this time; the rest is counted, and told with the next that goes.
    pub(super) fn output(&mut self, call: &CallId, stream: Stream, text: &str, now_ms: u64, to: &mpsc::Sender<Sign>) {
        if now_ms.saturating_sub(self.window_start_ms) >= WINDOW_MS {
            (self.window_start_ms, self.window_bytes) = (now_ms, 0);
        }
        let mut rest = text;
        while !rest.is_empty() {
            let (data, more) = rest.split_at(rest.floor_char_boundary(MAX_TEXT_BYTES));
            rest = more;
            self.piece(call, stream, data, to);
        }
    }

    fn piece(&mut self, call: &CallId, stream: Stream, data: &str, to: &mpsc::Sender<Sign>) {
        let skipped = &mut self.skipped[usize::from(stream == Stream::Stderr)];
        let output = Output {
            call: call.clone(),
            seq: self.seq,
            stream,
            data: data.to_owned(),
            skipped_bytes: (*skipped > 0).then_some(*skipped),
        };
        self.seq += 1;
        if self.window_bytes + data.len() <= WINDOW_BYTES && to.try_send(Sign::Output(output)).is_ok() {
            self.window_bytes += data.len();
            *skipped = 0;
        } else {
            // The session has more urgent things to do.
            *skipped += data.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(signs: &mut mpsc::Receiver<Sign>) -> Vec<(u64, Stream, usize, Option<u64>)> {
        let outputs = std::iter::from_fn(|| signs.try_recv().ok()).map(|sign| match sign {
            Sign::Output(output) => (output.seq, output.stream, output.data.len(), output.skipped_bytes),
            Sign::Progress(_) => panic!("no progress was made"),
        });
        outputs.collect()
    }

    #[test]
    fn a_flood_is_cut_and_says_how_much_is_missing() {
        let call = CallId::parse("c").unwrap();
        let (sender, mut signs) = mpsc::channel(1_000);
        let mut out = Told::default();
        let flood = "é".repeat(100 * 1024);
        out.output(&call, Stream::Stdout, &flood, 5_000, &sender);
        let first = told(&mut signs);
        assert_eq!(first.iter().map(|(_, _, bytes, _)| bytes).sum::<usize>(), WINDOW_BYTES);
        out.output(&call, Stream::Stderr, "x", 5_500, &sender);
        assert!(told(&mut signs).is_empty(), "both streams share the time");
        out.output(&call, Stream::Stdout, "y", 6_000, &sender);
        out.output(&call, Stream::Stderr, "z", 6_000, &sender);
        let pieces = flood.len().div_ceil(MAX_TEXT_BYTES) as u64;
        let missing = (flood.len() - WINDOW_BYTES) as u64;
        let rest = [(pieces + 1, Stream::Stdout, 1, Some(missing)), (pieces + 2, Stream::Stderr, 1, Some(1))];
        assert_eq!(told(&mut signs), rest);
    }

    #[test]
    fn a_session_that_does_not_listen_holds_nothing_up() {
        let call = CallId::parse("c").unwrap();
        let (sender, mut signs) = mpsc::channel(1);
        let mut out = Told::default();
        out.output(&call, Stream::Stdout, "a", 0, &sender);
        out.output(&call, Stream::Stdout, "bc", 0, &sender);
        assert_eq!(told(&mut signs), [(0, Stream::Stdout, 1, None)]);
        out.output(&call, Stream::Stdout, "d", 0, &sender);
        assert_eq!(told(&mut signs), [(2, Stream::Stdout, 1, Some(2))]);
    }
}
