//! A network that misbehaves: a TCP proxy between a foot and its hub.
//!
//! What goes wrong is dealt from a [`Plan`]. What is slow is a [`Link`]. Everything it did is counted, so that a story can
//! show that it was told in bad weather.

mod connection;
mod counts;
mod link;
mod plan;
mod pump;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Result;
use connection::Connection;

pub use counts::Counts;
pub use link::Link;
pub use plan::{Fault, Plan, seed};

/// Connections that wait to be accepted.
const BACKLOG: u32 = 64;

/// What all connections of a proxy share.
#[derive(Debug)]
struct Weather {
    plan: Plan,
    link: Link,
    counts: Counts,
    /// Whether faults are dealt.
    raging: watch::Sender<bool>,
    /// A fault that a test wants now, with its number.
    order: watch::Sender<(u64, Option<Fault>)>,
    /// Connections accepted so far.
    accepted: watch::Sender<u64>,
    /// No connection is let through before this.
    refuse_until: watch::Sender<Option<Instant>>,
}

/// A running proxy. It ends, with all its connections, when it is dropped.
#[derive(Debug)]
pub struct FaultProxy {
    url: String,
    weather: Arc<Weather>,
    _accepting: JoinSet<()>,
}

impl FaultProxy {
    /// A proxy before the server at `target` (`http://127.0.0.1:1234`), with faults as the plan has them.
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn start(target: &str, plan: Plan) -> Result<Self> {
        Self::start_on(target, plan, Link::default()).await
    }

    /// A proxy that is no faster than a link.
    ///
    /// # Errors
    /// When it cannot listen.
    pub async fn start_on(target: &str, plan: Plan, link: Link) -> Result<Self> {
        let target: SocketAddr = target.trim_start_matches("http://").parse()?;
        let socket = TcpSocket::new_v4()?;
        // Accepted connections inherit them.
        link.limit_buffers(&socket)?;
        socket.bind(([127, 0, 0, 1], 0).into())?;
        let listener = socket.listen(BACKLOG)?;
        let url = format!("http://{}", listener.local_addr()?);
        let weather = Arc::new(Weather {
            raging: watch::Sender::new(!plan.is_calm()),
            plan,
            link,
            counts: Counts::default(),
            order: watch::Sender::default(),
            accepted: watch::Sender::default(),
            refuse_until: watch::Sender::default(),
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, target, weather.clone()));
        Ok(Self { url, weather, _accepting: accepting })
    }

    /// Where a foot finds it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// No new faults from now on; those under way end within ten seconds.
    pub fn heal(&self) {
        self.weather.raging.send_replace(false);
        self.weather.refuse_until.send_replace(None);
    }

    /// One fault now, on every connection there is, whatever the plan says.
    pub fn inject(&self, fault: Fault) {
        self.weather.order.send_modify(|order| *order = (order.0 + 1, Some(fault)));
    }

    /// How long a fault lasts that was asked for.
    pub fn lasting(fault: Fault) -> Duration {
        Plan::lasting(fault)
    }

    /// Resets every connection there is.
    pub fn cut_all(&self) {
        self.inject(Fault::Reset);
    }

    /// Lets no new connection through for a while.
    pub fn refuse_for(&self, time: Duration) {
        self.weather.refuse_until.send_replace(Some(Instant::now() + time));
    }

    /// What it did so far.
    pub fn counts(&self) -> &Counts {
        &self.weather.counts
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, weather: Arc<Weather>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                // Nothing that can be done here helps a machine without descriptors.
                let Ok((near, _)) = accepted else { continue };
                connections.spawn(serve(near, target, weather.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(near: TcpStream, target: SocketAddr, weather: Arc<Weather>) {
    let refused = weather.refuse_until.borrow().is_some_and(|until| Instant::now() < until);
    if refused {
        weather.counts.add(Fault::Refuse);
        connection::reset(near);
        return;
    }
    match dial(target, weather.link).await {
        Ok(far) => {
            let number = {
                let mut number = 0;
                weather.accepted.send_modify(|accepted| {
                    *accepted += 1;
                    number = *accepted;
                });
                number
            };
            Connection::new(weather, number).carry(near, far).await;
        }
        // A server that is down: its client sees that much.
        Err(_) => connection::reset(near),
    }
}

async fn dial(target: SocketAddr, link: Link) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    link.limit_buffers(&socket)?;
    socket.connect(target).await
}

#[cfg(test)]
mod tests;
