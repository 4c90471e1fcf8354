//! Which requests of a connection are under way: from their head to the last byte of their answer.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::Response;
use bytes::Bytes;
use http_body::{Frame, SizeHint};

/// Counts the requests of one connection. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(Arc<()>);

impl InFlight {
    /// Counts one more, until the answer that it is tied to has been sent or given up.
    pub(super) fn enter(&self) -> Self {
        self.clone()
    }

    /// Ties a count to an answer.
    pub(super) fn tie(self, response: Response<Body>) -> Response<Body> {
        tie(response, self)
    }

    /// Whether none is under way. The connection and its service hold a count each, which is no request.
    pub(super) fn is_idle(&self) -> bool {
        Arc::strong_count(&self.0) <= 2
    }
}

/// Keeps something for as long as an answer is on its way.
pub(super) fn tie<G: Send + Unpin + 'static>(response: Response<Body>, guard: G) -> Response<Body> {
    response.map(|inner| Body::new(Tied { inner, _guard: guard }))
}

struct Tied<G> {
    inner: Body,
    _guard: G,
}

impl<G: Unpin> http_body::Body for Tied<G> {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_under_way_until_its_answer_is_gone() {
        let connection = InFlight::default();
        let service = connection.clone();
        assert!(connection.is_idle());
        let answer = service.enter().tie(Response::new(Body::from("text")));
        assert!(!connection.is_idle());
        drop(answer);
        assert!(connection.is_idle());
    }
}
