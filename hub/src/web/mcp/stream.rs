//! What a client is told on one stream, numbered, as far back as there is room: a reader may come late, read slowly, and
//! come again.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Messages of one stream that are kept, beside those that must arrive.
pub(super) const MAX_KEPT: usize = 256;
/// Bytes of them.
pub(super) const MAX_KEPT_BYTES: usize = 256 * 1024;

/// One stream. What was written to it can be read any number of times.
#[derive(Default)]
pub(super) struct Stream {
    ring: Mutex<Ring>,
    news: Notify,
    /// Its number within its session; a stream without one cannot be resumed.
    number: OnceLock<u64>,
}

#[derive(Default)]
struct Ring {
    kept: VecDeque<Kept>,
    bytes: usize,
    /// The number of the last message; they count from 1.
    last: u64,
    ended: bool,
}

impl Ring {
    fn make_room(&mut self) {
        while self.kept.len() > MAX_KEPT || self.bytes > MAX_KEPT_BYTES {
            let Some(oldest) = self.kept.iter().position(|kept| kept.courtesy) else { break };
            let Some(gone) = self.kept.remove(oldest) else { break };
            self.bytes -= gone.text.len();
        }
    }
}

struct Kept {
    number: u64,
    text: Bytes,
    /// Whether it may make room for others.
    courtesy: bool,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A message with its number.
    Message(u64, Bytes),
    /// Nothing follows.
    End,
}

impl Stream {
    /// Writes something that may be missed.
    pub(super) fn tell(&self, text: String) {
        self.push(text, true);
    }

    /// Writes something that is kept as long as the stream is, or until it is released. Answers its number; 0 when the stream
    /// has ended.
    pub(super) fn send(&self, text: String) -> u64 {
        self.push(text, false)
    }

    /// What was written under this number may be missed from now on.
    pub(super) fn release(&self, number: u64) {
        let mut ring = self.ring.lock();
        if let Ok(place) = ring.kept.binary_search_by_key(&number, |kept| kept.number)
            && let Some(kept) = ring.kept.get_mut(place)
        {
            kept.courtesy = true;
        }
        ring.make_room();
    }

    /// The number of the last message.
    pub(super) fn last(&self) -> u64 {
        self.ring.lock().last
    }

    fn push(&self, text: String, courtesy: bool) -> u64 {
        let mut ring = self.ring.lock();
        if ring.ended {
            // Nothing was written, so nothing is to be released.
            return 0;
        }
        ring.last += 1;
        ring.bytes += text.len();
        let number = ring.last;
        ring.kept.push_back(Kept { number, text: text.into(), courtesy });
        ring.make_room();
        drop(ring);
        self.news.notify_waiters();
        number
    }

    /// Ends it.
    pub(super) fn end(&self) {
        self.ring.lock().ended = true;
        self.news.notify_waiters();
    }

    /// Whether nothing was written.
    pub(super) fn is_unused(&self) -> bool {
        self.last() == 0
    }

    /// Whether nothing more can be written.
    pub(super) fn has_ended(&self) -> bool {
        self.ring.lock().ended
    }

    /// Bytes that it keeps.
    pub(super) fn bytes(&self) -> usize {
        self.ring.lock().bytes
    }

    /// Its number within its session.
    pub(super) fn number(&self) -> Option<u64> {
        self.number.get().copied()
    }

    /// Numbers it. The first number counts.
    pub(super) fn set_number(&self, number: u64) {
        // A stream is opened once.
        let _ = self.number.set(number);
    }

    /// Waits until nothing more can be written.
    pub(super) async fn ended(&self) {
        let mut news = pin!(self.news.notified());
        loop {
            news.as_mut().enable();
            if self.has_ended() {
                return;
            }
            news.as_mut().await;
            news.set(self.news.notified());
        }
    }

    /// Waits for the first message.
    pub(super) async fn first(&self) {
        self.next(0).await;
    }

    /// What comes after the message of this number. Can be dropped and asked again without losing anything.
    pub(super) async fn next(&self, seen: u64) -> Next {
        let mut news = pin!(self.news.notified());
        loop {
            news.as_mut().enable();
            if let Some(next) = self.after(seen) {
                return next;
            }
            news.as_mut().await;
            news.set(self.news.notified());
        }
    }

    fn after(&self, seen: u64) -> Option<Next> {
        let ring = self.ring.lock();
        let next = ring.kept.partition_point(|kept| kept.number <= seen);
        match ring.kept.get(next) {
            Some(kept) => Some(Next::Message(kept.number, kept.text.clone())),
            None => ring.ended.then_some(Next::End),
        }
    }
}

/// Where a reader is on a stream.
pub(super) struct Reader {
    pub(super) stream: Arc<Stream>,
    pub(super) seen: u64,
}

impl Reader {
    /// The next message, or the end.
    pub(super) async fn next(&mut self) -> Next {
        let next = self.stream.next(self.seen).await;
        if let Next::Message(number, _) = &next {
            self.seen = *number;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_may_be_missed_makes_room_for_what_may_not() {
        let stream = Arc::new(Stream::default());
        stream.send("question".to_owned());
        for _ in 0..=MAX_KEPT {
            stream.tell("progress".to_owned());
        }
        stream.send("answer".to_owned());
        stream.end();
        let mut reader = Reader { stream: stream.clone(), seen: 0 };
        let mut texts = Vec::new();
        while let Next::Message(_, text) = reader.next().await {
            texts.push(text);
        }
        assert_eq!(texts.len(), MAX_KEPT);
        assert_eq!((&texts[0][..], &texts[MAX_KEPT - 1][..]), (&b"question"[..], &b"answer"[..]));
        stream.tell("late".to_owned());
        assert_eq!(stream.next(reader.seen).await, Next::End);
        assert_eq!(stream.send("late question".to_owned()), 0, "the answer is not released in its place");
    }

    #[tokio::test]
    async fn what_is_released_makes_room() {
        let stream = Stream::default();
        for _ in 0..=2 * MAX_KEPT {
            stream.release(stream.send("question".to_owned()));
        }
        assert_eq!((stream.last(), stream.bytes()), (2 * MAX_KEPT as u64 + 1, MAX_KEPT * "question".len()));
    }

    #[tokio::test]
    async fn a_reader_that_comes_again_reads_on_where_it_was() {
        let stream = Stream::default();
        for text in ["a", "b", "c"] {
            stream.tell(text.to_owned());
        }
        assert_eq!(stream.next(1).await, Next::Message(2, "b".into()));
        assert_eq!(stream.next(2).await, Next::Message(3, "c".into()));
        assert!(futures::FutureExt::now_or_never(stream.next(3)).is_none());
    }
}
