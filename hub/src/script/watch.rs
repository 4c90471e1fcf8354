//! The clock and the budget of one run, as the engine sees them.

use std::cell::Cell;
use std::time::Instant;

use super::limits::{MAX_STEPS, STEPS_PER_TICK};

/// Which limit ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Its time is up.
    Deadline,
    /// It made more steps than it may.
    Steps,
}

/// Decides when a run has had enough. Once it has, it stays so: what a script catches does not bring it back.
#[derive(Debug)]
pub(super) struct Watch {
    deadline: Cell<Option<Instant>>,
    ticks_left: Cell<u64>,
    stop: Cell<Option<Stop>>,
}

impl Default for Watch {
    fn default() -> Self {
        Self::with_steps(MAX_STEPS)
    }
}

impl Watch {
    /// A watch that has not started yet, for so many steps.
    pub(super) fn with_steps(steps: u64) -> Self {
        Self { deadline: Cell::new(None), ticks_left: Cell::new(steps / STEPS_PER_TICK), stop: Cell::new(None) }
    }

    /// Starts the run's clock.
    pub(super) fn start(&self, deadline: Instant) {
        self.deadline.set(Some(deadline));
    }

    /// One tick of the interpreter, [`STEPS_PER_TICK`] steps. Answers whether the run must end.
    pub(super) fn tick(&self) -> bool {
        match self.ticks_left.get().checked_sub(1) {
            Some(left) => self.ticks_left.set(left),
            None if self.stop.get().is_none() => self.stop.set(Some(Stop::Steps)),
            None => {}
        }
        self.over()
    }

    /// Whether the run must end. Looks at the clock.
    pub(super) fn over(&self) -> bool {
        if self.stop.get().is_none() && self.deadline.get().is_some_and(|deadline| Instant::now() >= deadline) {
            self.stop.set(Some(Stop::Deadline));
        }
        self.stop.get().is_some()
    }

    /// Which limit was reached first, after a last look at the clock.
    pub(super) fn verdict(&self) -> Option<Stop> {
        self.over();
        self.stop.get()
    }
}
