//! The listening socket and the connections that come in by it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::in_flight::InFlight;
use super::state::AppState;
use super::writes::Writes;
use crate::lifecycle::Lifecycle;

/// Connections at once, feet included; further ones wait to be accepted.
pub const MAX_CONNECTIONS: usize = 30_000;
/// How long a connection may take to send a request's head, the wait before it included: longer than clients keep an idle
/// connection, so that they close it first.
const HEAD_TIMEOUT: Duration = Duration::from_secs(120);
/// How often a connection of a hub that goes down is looked at.
const IDLE_LOOK: Duration = Duration::from_millis(100);
/// How long the hard end of the hub waits for the answers that say so: shorter than
/// [`HARD_TIMEOUT`](crate::lifecycle::HARD_TIMEOUT). A connection on which nothing is under way ends earlier.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Pause after a failed accept: out of files, most likely.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves until the hub stops: after the soft signal no new request is taken and running ones end, after the hard one they are
/// cut off, which their answers say, and all connections are dropped.
pub fn spawn(listener: TcpListener, state: Arc<AppState>) {
    let lifecycle = state.lifecycle.clone();
    let app = super::router(state);
    lifecycle.clone().spawn_work(async move {
        tokio::select! {
            () = accept(listener, app, &lifecycle) => {}
            () = lifecycle.soft().cancelled() => {}
        }
    });
}

async fn accept(listener: TcpListener, app: Router, lifecycle: &Lifecycle) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let Ok(place) = places.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((socket, _)) => lifecycle.spawn_work(connection(socket, app.clone(), lifecycle.clone(), place)),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Waits until no request of a connection is under way. `requests` and its copy in the connection's service count as none.
async fn idle(requests: &InFlight) {
    while !requests.is_idle() {
        tokio::time::sleep(IDLE_LOOK).await;
    }
    // What was answered last is on its way out.
    tokio::time::sleep(IDLE_LOOK).await;
}

/// Waits for the hard end, and for what is said at it to leave.
async fn over(lifecycle: &Lifecycle) {
    lifecycle.hard().cancelled().await;
    tokio::time::sleep(LAST_WORDS).await;
}

async fn connection(socket: TcpStream, app: Router, lifecycle: Lifecycle, place: OwnedSemaphorePermit) {
    // Without it an event of a stream may wait 40 ms for an acknowledgement.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let requests = InFlight::default();
    let counted = requests.clone();
    let app = TowerToHyperService::new(app);
    let service = service_fn(move |request| {
        let (count, answer) = (counted.enter(), app.call(request));
        async move { answer.await.map(|response| count.tie(response)) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(Writes::new(socket, lifecycle.soft().clone())), service)
        .with_upgrades();
    let mut served = pin!(served);
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = lifecycle.soft().cancelled() => {
            // The running request ends, none follows.
            served.as_mut().graceful_shutdown();
            tokio::select! {
                ended = served => ended,
                () = over(&lifecycle) => Ok(()),
                // Half a head is no request: nothing waits for the rest of it.
                () = idle(&requests) => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    drop(place);
}
