//! One connection, from its first frame to the end of its foot's grace. One task owns it; others reach it through its
//! outbox.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use footbridge_shared::message::{Draining, Ping};
use tokio::time::Instant;

use super::Core;
use super::config::millis;
use super::foot::Foot;
use super::frame::Ending;
use super::handshake::{NoSeat, greet};
use super::inbound::{Inbound, Next};
use super::outbox::Outbox;
use super::roster::Roster;
use super::wire::{Event, FootSocket, Wire};
use crate::clock::random_bytes;
use crate::domain::principal::Principal;

/// Heartbeats come this much earlier or later, in parts of their interval.
const HEARTBEAT_JITTER: f64 = 0.1;

/// A connection that is its foot's own.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) foot: Arc<Foot>,
    pub(super) roster: Arc<Roster>,
    pub(super) epoch: u64,
    /// The foot shows the tools of the process before.
    pub(super) inherited: bool,
}

/// How a seated connection ended.
#[derive(Debug)]
struct Parting {
    /// What the foot is told; `None` when there is nobody to tell.
    ending: Option<Ending>,
    /// Whether the foot may resume.
    returns: bool,
    reason: String,
}

impl Parting {
    fn told(ending: Ending, returns: bool) -> Self {
        let reason = ending.close.reason.clone();
        Self { ending: Some(ending), returns, reason }
    }

    fn lost(reason: String) -> Self {
        Self { ending: None, returns: true, reason }
    }
}

/// Counts one while it lives.
struct Present<'a>(&'a Core);

impl<'a> Present<'a> {
    fn new(core: &'a Core) -> Self {
        core.connections.fetch_add(1, Ordering::Relaxed);
        Self(core)
    }
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves a connection to its end. Ends soon after the hub stops.
pub(super) async fn run<S: FootSocket>(core: Arc<Core>, socket: S, principal: Arc<Principal>) {
    let outbox = Arc::new(Outbox::new(core.config.send_queue));
    let mut wire = Wire::new(socket, outbox, &core.config);
    let present = Present::new(&core);
    let seat = match greet(&core, &mut wire, &principal).await {
        Ok(seat) => seat,
        Err(NoSeat::Refused(ending)) => {
            core.totals.refused();
            tracing::info!(subject = %principal.subject, reason = ending.close.reason, "a foot was refused");
            return wire.close(ending).await;
        }
        Err(NoSeat::Lost(reason)) => {
            tracing::debug!(subject = %principal.subject, reason, "a connection ended before its `hello`");
            return;
        }
    };
    let parting = serve(&core, &mut wire, &seat, &principal).await;
    // First of all its tools go: what is listed can be called.
    let own = seat.roster.detach(&seat.foot, seat.epoch);
    tracing::info!(foot = %seat.foot.name, owner = %seat.foot.owner, reason = parting.reason, own, "a foot's connection ended");
    if own && !parting.returns {
        seat.roster.leave(&seat.foot, seat.epoch);
    }
    match parting.ending {
        Some(ending) => wire.close(ending).await,
        None => drop(wire),
    }
    drop(present);
    if own && parting.returns {
        await_return(&core, &seat).await;
    }
}

/// Serves a seated connection until something ends it.
async fn serve<S: FootSocket>(core: &Arc<Core>, wire: &mut Wire<S>, seat: &Seat, principal: &Principal) -> Parting {
    let outbox = wire.outbox().clone();
    let mut inbound = Inbound::new(core, seat, &outbox);
    inbound.refresh_servers();
    let mut heart = Heart::new(core);
    let mut beat = pin!(tokio::time::sleep(heart.interval()));
    let mut inheritance = pin!(tokio::time::sleep(core.config.takeover_grace));
    let mut inherited = seat.inherited;
    let mut ended = pin!(principal.ended.cancelled());
    let mut room = core.node.parts.freed();
    let mut hard = pin!(core.lifecycle.hard().cancelled());
    loop {
        let event = tokio::select! {
            biased;
            () = &mut hard => return drained(core, &outbox),
            () = &mut ended => return Parting::told(Ending::ended_token(), true),
            () = &mut beat => {
                if !heart.beats() {
                    return Parting::told(Ending::timeout("the foot does not answer heartbeats"), true);
                }
                outbox.control(Ping { sent_ms: core.node.now_ms() });
                beat.as_mut().reset(Instant::now() + heart.interval());
                continue;
            }
            () = &mut inheritance, if inherited => {
                inherited = false;
                if seat.foot.drop_inherited(seat.epoch) {
                    seat.roster.offers_changed();
                }
                continue;
            }
            Ok(()) = room.changed(), if inbound.waits_for_room() => {
                inbound.go_on();
                continue;
            }
            event = wire.next() => event,
        };
        match event {
            Event::Frame(frame) => {
                heart.heard();
                match inbound.receive(frame) {
                    Next::Goes => {}
                    Next::Bye(reason) => {
                        let ending = Some(Ending::goodbye());
                        return Parting { ending, returns: false, reason: format!("bye: {reason}") };
                    }
                    Next::Closed => return Parting::told(Ending::closed_by_foot(), true),
                    Next::Offers(tools) => tokio::select! {
                        biased;
                        () = &mut hard => return drained(core, &outbox),
                        () = inbound.offered(*tools) => {}
                    },
                    Next::Late(end) => tokio::select! {
                        biased;
                        () = &mut hard => return drained(core, &outbox),
                        () = inbound.late(*end) => {}
                    },
                    Next::BadFrames => return Parting::told(Ending::bad_frames(), true),
                }
            }
            Event::Ended(ending) => return Parting::told(ending, true),
            Event::Lost(reason) => return Parting::lost(reason),
        }
    }
}

/// Keeps the foot's calls waiting for it, as long as the grace lasts.
async fn await_return(core: &Core, seat: &Seat) {
    tokio::select! {
        biased;
        () = seat.foot.replaced(seat.epoch) => return,
        // Nobody can come back to a hub that goes down.
        () = core.lifecycle.soft().cancelled() => {}
        () = tokio::time::sleep(core.config.resume_grace) => {
            tracing::info!(foot = %seat.foot.name, owner = %seat.foot.owner, "a foot did not come back in time");
        }
    }
    seat.roster.leave(&seat.foot, seat.epoch);
}

/// The hub goes down, and the calls that feet could work for are done or given up: tells a foot to come back later; not
/// all at the same time. Told earlier, a foot would leave between two calls of one script.
fn drained(core: &Core, outbox: &Outbox) -> Parting {
    let wait = core.config.drain_min + core.config.drain_spread.mul_f64(random_unit());
    outbox.control(Draining { reconnect_after_ms: millis(wait), try_for_ms: millis(core.config.drain_try_for) });
    Parting::told(Ending::drained(), false)
}

/// Whether the foot lives: any frame says so.
struct Heart {
    interval: Duration,
    misses: u32,
    heard: bool,
    missed: u32,
}

impl Heart {
    fn new(core: &Core) -> Self {
        let misses = core.config.heartbeat_misses;
        Self { interval: core.config.heartbeat_interval, misses, heard: true, missed: 0 }
    }

    /// Until the next beat: with jitter, so that many feet do not beat as one.
    fn interval(&self) -> Duration {
        self.interval.mul_f64(1.0 + HEARTBEAT_JITTER * (2.0 * random_unit() - 1.0))
    }

    fn heard(&mut self) {
        self.heard = true;
    }

    /// Time for a ping. `false`: too many of those before brought nothing.
    fn beats(&mut self) -> bool {
        self.missed = if std::mem::take(&mut self.heard) { 0 } else { self.missed + 1 };
        self.missed < self.misses
    }
}

/// From 0 to below 1.
fn random_unit() -> f64 {
    f64::from(u16::from_be_bytes(random_bytes())) / 65_536.0
}
