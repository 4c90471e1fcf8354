//! One connection through the proxy, and what befalls it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::Weather;
use super::plan::{Fault, LONGEST, Plan, Step};
use super::pump::{Ended, Flow, pump};

/// How much later things are with [`Fault::Delay`].
const DELAY: Duration = Duration::from_millis(80);
/// How long the hub does not hear a foot before its side is stranded: what it says meanwhile is what arrives late.
const STRAND_AFTER: Duration = Duration::from_millis(100);
/// How long a truncation waits for something to truncate.
const TRUNCATE_WITHIN: Duration = Duration::from_secs(2);
/// How long the side that did not close may take to close as well.
const SECOND_CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// How a connection ends.
enum Fate {
    /// Both sides see an end.
    Close,
    /// Both see a reset.
    Reset,
    /// The foot's side first, see [`Fault::Strand`].
    Strand(Duration),
}

pub(super) struct Connection {
    weather: Arc<Weather>,
    number: u64,
    up: watch::Sender<Flow>,
    down: watch::Sender<Flow>,
}

impl Connection {
    pub(super) fn new(weather: Arc<Weather>, number: u64) -> Self {
        weather.counts.add_connection();
        Self { weather, number, up: watch::Sender::default(), down: watch::Sender::default() }
    }

    /// Carries bytes between a foot (`near`) and a hub (`far`) to the end.
    pub(super) async fn carry(self, mut near: TcpStream, mut far: TcpStream) {
        let fate = {
            let ((near_read, near_write), (far_read, far_write)) = (near.split(), far.split());
            let up = pump(near_read, far_write, self.up.subscribe(), self.weather.link);
            let down = pump(far_read, near_write, self.down.subscribe(), self.weather.link);
            tokio::select! {
                fate = both(up, down) => fate,
                fate = self.befall() => fate,
            }
        };
        match fate {
            Fate::Close => drop((near, far)),
            Fate::Reset => {
                reset(near);
                reset(far);
            }
            Fate::Strand(late) => self.strand(near, far, late).await,
        }
    }

    /// Carries out one fault after the other, up to a deadly one.
    async fn befall(&self) -> Fate {
        let mut steps = self.weather.plan.deal().into_iter();
        let mut orders = self.weather.order.subscribe();
        loop {
            let Step { fault, lasting, .. } = tokio::select! {
                step = self.due(steps.next()) => step,
                Ok(()) = orders.changed() => match orders.borrow_and_update().1 {
                    Some(fault) => Step { after: Duration::ZERO, fault, lasting: Plan::lasting(fault) },
                    None => continue,
                },
            };
            self.weather.counts.add(fault);
            if fault.is_deadly() {
                let refuse = steps.next().filter(|step| step.fault == Fault::Refuse);
                let fate = self.kill(fault, lasting).await;
                if let Some(Step { lasting, .. }) = refuse.filter(|_| *self.weather.raging.borrow()) {
                    self.weather.refuse_until.send_replace(Some(Instant::now() + lasting));
                }
                return fate;
            }
            let flow = if fault == Fault::Delay { Flow::Late(DELAY) } else { Flow::Hold };
            self.both_ways(flow);
            sleep(lasting).await;
            self.both_ways(Flow::Pass);
        }
    }

    /// The next step, when its time has come: never, once the weather is fine.
    async fn due(&self, step: Option<Step>) -> Step {
        if let Some(step) = step {
            sleep(step.after).await;
            if *self.weather.raging.borrow() {
                return step;
            }
        }
        std::future::pending().await
    }

    async fn kill(&self, fault: Fault, lasting: Duration) -> Fate {
        match fault {
            Fault::HalfCloseUp | Fault::HalfCloseDown => {
                let half = if fault == Fault::HalfCloseUp { &self.up } else { &self.down };
                half.send_replace(Flow::Shut);
                // The other direction lives until they draw their conclusions.
                sleep(lasting + SECOND_CLOSE_WITHIN).await;
                Fate::Close
            }
            Fault::TruncateUp | Fault::TruncateDown => {
                let half = if fault == Fault::TruncateUp { &self.up } else { &self.down };
                half.send_replace(Flow::Halve);
                // The pump ends the connection when it is done.
                sleep(TRUNCATE_WITHIN).await;
                Fate::Close
            }
            Fault::Blackhole => {
                self.both_ways(Flow::Hold);
                sleep(lasting).await;
                Fate::Reset
            }
            Fault::Strand => {
                // Both: a word of the hub to a foot that was killed just now would end the connection before it is stranded.
                self.both_ways(Flow::Hold);
                sleep(STRAND_AFTER).await;
                Fate::Strand(lasting)
            }
            Fault::Reset => Fate::Reset,
            _ => Fate::Close,
        }
    }

    fn both_ways(&self, flow: Flow) {
        self.up.send_replace(flow);
        self.down.send_replace(flow);
    }

    /// Cuts off the foot, and tells the hub when the foot has another connection.
    async fn strand(self, near: TcpStream, mut far: TcpStream, late: Duration) {
        let mut last_words = Vec::new();
        let mut buffer = [0; 16 * 1024];
        while let Ok(count @ 1..) = near.try_read(&mut buffer) {
            last_words.extend_from_slice(&buffer[..count]);
        }
        reset(near);
        let mut accepted = self.weather.accepted.subscribe();
        let number = self.number;
        let next = async {
            // An error means the end of the proxy.
            let _ = accepted.wait_for(|accepted| *accepted > number).await;
            sleep(late).await;
        };
        let (mut read, mut write) = far.split();
        let deaf = async {
            while let Ok(1..) = read.read(&mut buffer).await {}
            std::future::pending::<()>().await
        };
        tokio::select! {
            _ = timeout(LONGEST, next) => {}
            () = deaf => {}
        }
        // The hub may have closed it in the meantime; that is what it is about.
        let _ = write.write_all(&last_words).await;
        let _ = write.shutdown().await;
        sleep(STRAND_AFTER).await;
        reset(far);
    }
}

/// Runs both directions: an end of one is passed on and the other may still speak, a break ends both.
async fn both(up: impl Future<Output = Ended>, down: impl Future<Output = Ended>) -> Fate {
    tokio::pin!(up, down);
    let first = tokio::select! {
        ended = &mut up => (ended, true),
        ended = &mut down => (ended, false),
    };
    let second = async { if first.1 { down.await } else { up.await } };
    match first.0 {
        Ended::Finished => match timeout(SECOND_CLOSE_WITHIN, second).await {
            Ok(Ended::Broken) => Fate::Reset,
            _ => Fate::Close,
        },
        Ended::Truncated => Fate::Close,
        Ended::Broken => Fate::Reset,
    }
}

/// Ends a connection so that the other side sees a reset.
pub(super) fn reset(stream: TcpStream) {
    // Where it cannot be set, an end is as good.
    let _ = stream.set_zero_linger();
    drop(stream);
}
