//! Bodies of requests on their way in: how long one may take, and how much of all of them the hub holds at once.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use footbridge_shared::ErrorCode;
use footbridge_shared::id::Subject;
use futures::StreamExt as _;
use http_body::Body as _;
use http_body_util::LengthLimitError;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::error::ApiError;
use super::{MAX_BODY_BYTES, MAX_CALL_BODY_BYTES};

const MIB: usize = 1024 * 1024;
/// What the hub holds of bodies at once, in MiB: of each from its first byte until its request is answered.
pub const MAX_BODIES_MIB: usize = 256;
/// Of these, what one subject may have, in MiB: some calls of the largest size, and never all that there is.
pub const MAX_BODIES_OF_A_SUBJECT_MIB: usize = 96;
/// How long a request waits for room. Most bodies are small and soon gone.
const ROOM_WAIT: Duration = Duration::from_secs(2);
/// What `overloaded` suggests to wait, in milliseconds.
const RETRY_AFTER_MS: u64 = 1_000;
/// How long a body may stand still.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// How long every body may take, however small.
const BASE_LIMIT: Duration = Duration::from_secs(60);
/// How fast it comes in beyond that, on average, in bytes a second: the slowest line that is waited for.
const MIN_RATE: u64 = 16 * 1024;

/// Counts what the hub holds of bodies. Cheap to clone.
#[derive(Clone)]
pub struct Bodies(Arc<Inner>);

struct Inner {
    all: Arc<Semaphore>,
    subjects: Mutex<HashMap<Subject, Arc<Semaphore>>>,
}

impl Default for Bodies {
    fn default() -> Self {
        let all = Arc::new(Semaphore::new(MAX_BODIES_MIB * MIB));
        Self(Arc::new(Inner { all, subjects: Mutex::default() }))
    }
}

impl Bodies {
    /// Reads a body, which waits for room as its size is known or as it comes. `stop` is the end of the hub: a body that is
    /// not there yet is given up then, for what it asks would not begin any more.
    ///
    /// # Errors
    /// It is too large or too slow, there is no room, or the hub goes down.
    pub(super) async fn read(
        &self,
        body: Body,
        subject: Option<&Subject>,
        stop: &CancellationToken,
    ) -> Result<(Bytes, Held), ApiError> {
        let mut held = self.hold(subject);
        let begun = Instant::now();
        let announced = body.size_hint().exact().and_then(|size| usize::try_from(size).ok()).unwrap_or_default();
        held.reserve(announced, stop).await?;
        let mut text = Vec::new();
        let mut chunks = body.into_data_stream();
        loop {
            let overall = begun + BASE_LIMIT + Duration::from_secs(text.len() as u64 / MIN_RATE);
            let chunk = tokio::select! {
                biased;
                chunk = chunks.next() => chunk,
                () = stop.cancelled() => return Err(draining()),
                () = tokio::time::sleep_until(overall.min(Instant::now() + IDLE_LIMIT)) => return Err(too_slow()),
            };
            let Some(chunk) = chunk else { break };
            let chunk = chunk.map_err(|error| unreadable(&error))?;
            held.reserve(text.len() + chunk.len(), stop).await?;
            text.extend_from_slice(&chunk);
        }
        Ok((text.into(), held))
    }

    fn hold(&self, subject: Option<&Subject>) -> Held {
        let own = subject.map(|subject| {
            let mut subjects = self.0.subjects.lock();
            let new = || Arc::new(Semaphore::new(MAX_BODIES_OF_A_SUBJECT_MIB * MIB));
            (subject.clone(), subjects.entry(subject.clone()).or_insert_with(new).clone())
        });
        Held { bodies: self.clone(), own, permits: Vec::new(), bytes: 0 }
    }
}

/// The place of one body. Dropped, it is free again.
pub(super) struct Held {
    bodies: Bodies,
    own: Option<(Subject, Arc<Semaphore>)>,
    permits: Vec<OwnedSemaphorePermit>,
    bytes: usize,
}

impl Held {
    /// Sees that there is room for so many bytes.
    async fn reserve(&mut self, bytes: usize, stop: &CancellationToken) -> Result<(), ApiError> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let room = async {
            // What is too large for the whole hub never gets room.
            let count = u32::try_from(more).ok()?;
            let own = match &self.own {
                Some((_, own)) => Some(own.clone().acquire_many_owned(count).await.ok()?),
                None => None,
            };
            let all = self.bodies.0.all.clone().acquire_many_owned(count).await.ok()?;
            Some((own, all))
        };
        let (own, all) = tokio::select! {
            biased;
            room = tokio::time::timeout(ROOM_WAIT, room) => room.ok().flatten().ok_or_else(overloaded)?,
            () = stop.cancelled() => return Err(draining()),
        };
        for permit in own.into_iter().chain([all]) {
            match self.permits.iter_mut().find(|held| Arc::ptr_eq(held.semaphore(), permit.semaphore())) {
                Some(held) => held.merge(permit),
                None => self.permits.push(permit),
            }
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Held {
    fn shrink(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        for permit in &mut self.permits {
            drop(permit.split(less));
        }
        self.bytes -= less;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.permits.clear();
        if let Some((subject, own)) = self.own.take() {
            let mut subjects = self.bodies.0.subjects.lock();
            // The table's and this one: nobody else counts by it.
            if Arc::strong_count(&own) == 2 {
                subjects.remove(&subject);
            }
        }
    }
}

/// Where the place of a request's body is kept while the request lives. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Place(Arc<Mutex<Option<Held>>>);

impl Place {
    /// Keeps it.
    pub(super) fn keep(&self, held: Held) {
        *self.0.lock() = Some(held);
    }

    /// Frees all but so many bytes: no more of the body is kept, though the request lives.
    pub(super) fn shrink(&self, bytes: usize) {
        if let Some(held) = self.0.lock().as_mut() {
            held.shrink(bytes);
        }
    }

    /// Whether there is something to keep.
    pub(super) fn is_taken(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|held| held.bytes > 0)
    }
}

fn overloaded() -> ApiError {
    let mut error =
        ApiError::new(ErrorCode::Overloaded, "the bodies of other requests take all the room that there is")
            .hint("wait as `Retry-After` says, then send it again");
    error.0.retry_after_ms = Some(RETRY_AFTER_MS);
    error
}

fn draining() -> ApiError {
    ApiError::new(ErrorCode::Draining, "the hub is going down").hint("try again shortly")
}

fn too_slow() -> ApiError {
    let mut error = ApiError::new(
        ErrorCode::BadRequest,
        format!(
            "the body did not come: it may stand still for {} s, and take {} s and a second for each {} KiB",
            IDLE_LIMIT.as_secs(),
            BASE_LIMIT.as_secs(),
            MIN_RATE / 1024
        ),
    );
    error.0.status = 408;
    error
}

fn unreadable(error: &axum::Error) -> ApiError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(this) = cause {
        if this.is::<LengthLimitError>() {
            let message = format!(
                "the body is larger than this path reads: {MAX_CALL_BODY_BYTES} bytes for a call, {MAX_BODY_BYTES} elsewhere"
            );
            return ApiError::new(ErrorCode::PayloadTooLarge, message);
        }
        cause = this.source();
    }
    ApiError::new(ErrorCode::BadRequest, "the body could not be read")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream::{self, Stream};

    use super::*;

    fn subject(name: &str) -> Subject {
        Subject::parse(name).unwrap()
    }

    /// A body of these chunks, which then does not end.
    fn unfinished(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Body {
        Body::from_stream(chunks.chain(stream::pending()).map(Ok::<_, Infallible>))
    }

    async fn status(bodies: &Bodies, body: Body) -> u16 {
        let stop = CancellationToken::new();
        bodies.read(body, Some(&subject("ann")), &stop).await.map_or_else(|error| error.0.status, |_| 200)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stands_still_is_given_up_and_one_that_drips_too() {
        let bodies = Bodies::default();
        let begun = Instant::now();
        assert_eq!(status(&bodies, unfinished(stream::iter([Bytes::from_static(b"{")]))).await, 408);
        assert_eq!(begun.elapsed(), IDLE_LIMIT);
        let drip = stream::unfold((), |()| async {
            tokio::time::sleep(IDLE_LIMIT / 2).await;
            Some((Bytes::from_static(b" "), ()))
        });
        let begun = Instant::now();
        assert_eq!(status(&bodies, unfinished(drip)).await, 408);
        assert_eq!(begun.elapsed(), BASE_LIMIT);
        // As slow as it may be, it comes.
        let slow = stream::unfold(0, |count| async move {
            tokio::time::sleep(Duration::from_secs(10)).await;
            (count < 20).then(|| (Ok::<_, Infallible>(Bytes::from(vec![b' '; 10 * 16 * 1024])), count + 1))
        });
        assert_eq!(status(&bodies, Body::from_stream(slow)).await, 200);
        assert_eq!(bodies.0.all.available_permits(), MAX_BODIES_MIB * MIB);
        assert!(bodies.0.subjects.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_subject_and_the_hub_hold_is_bounded_and_free_again() {
        let (bodies, stop) = (Bodies::default(), CancellationToken::new());
        let body = || Body::from(vec![b' '; 16 * MIB]);
        let mut held = Vec::new();
        for name in ["ann", "bob", "eve"] {
            while let Ok((_, one)) = bodies.read(body(), Some(&subject(name)), &stop).await {
                held.push(one);
            }
        }
        assert_eq!(held.len() * 16, MAX_BODIES_MIB);
        let Err(refused) = bodies.read(body(), Some(&subject("ann")), &stop).await else { panic!("there is no room") };
        assert_eq!((refused.0.code, refused.0.retry_after_ms), (ErrorCode::Overloaded, Some(RETRY_AFTER_MS)));
        // What comes without a size is counted as it comes.
        let chunks = stream::repeat(Bytes::from(vec![b' '; MIB])).take(16);
        assert_eq!(status(&bodies, unfinished(chunks)).await, 503);
        // Whoever waits gets what becomes free.
        let ann = subject("ann");
        let waits = bodies.read(body(), Some(&ann), &stop);
        let frees = async { drop(held.remove(0)) };
        assert!(tokio::join!(waits, frees).0.is_ok());
        held.clear();
        assert_eq!(bodies.0.all.available_permits(), MAX_BODIES_MIB * MIB);
        assert!(bodies.0.subjects.lock().is_empty());
    }

    #[tokio::test]
    async fn what_lasts_holds_what_it_keeps_and_no_more() {
        let bodies = Bodies::default();
        let ann = subject("ann");
        let read = bodies.read(Body::from(vec![b' '; MIB]), Some(&ann), &CancellationToken::new()).await;
        let place = Place::default();
        place.keep(read.map_err(|error| error.0).unwrap().1);
        for (asked, kept) in [(MIB + 1, MIB), (100, 100), (200, 100)] {
            place.shrink(asked);
            assert_eq!(bodies.0.all.available_permits(), MAX_BODIES_MIB * MIB - kept);
        }
        drop(place);
        assert_eq!(bodies.0.all.available_permits(), MAX_BODIES_MIB * MIB);
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_hub_does_not_wait_for_a_body() {
        let (bodies, stop) = (Bodies::default(), CancellationToken::new());
        let body = unfinished(stream::iter([Bytes::from_static(b"{")]));
        let subject = subject("ann");
        let read = bodies.read(body, Some(&subject), &stop);
        let begun = Instant::now();
        let (read, ()) = tokio::join!(read, async { stop.cancel() });
        let Err(error) = read else { panic!("it is not there") };
        assert_eq!((error.0.code, begun.elapsed()), (ErrorCode::Draining, Duration::ZERO));
        // What is there is read all the same.
        assert!(bodies.read(Body::from("{}"), None, &stop).await.is_ok());
    }

    #[tokio::test]
    async fn what_is_larger_than_the_path_reads_is_told_so() {
        let body = Body::new(http_body_util::Limited::new(Body::from("12345"), 4));
        assert_eq!(status(&Bodies::default(), body).await, 413);
    }
}
