//! What will go wrong, dealt from a seed.
//!
//! The kinds of faults are dealt like cards: each run through the pack has every kind once. So a short story sees all of
//! them, and the order still differs from seed to seed.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{Result, scale};

/// Longest that any fault takes until its connection is gone or as good as before.
pub(super) const LONGEST: Duration = Duration::from_secs(10);

/// Something that happens to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Both sides see a reset.
    Reset,
    /// Both sides see an end.
    Close,
    /// The hub sees the foot's stream end; what the hub says still arrives.
    HalfCloseUp,
    /// The foot sees the hub's stream end; what the foot says still arrives.
    HalfCloseDown,
    /// The hub gets half of what the foot sends next, then an end.
    TruncateUp,
    /// The foot gets half of what the hub sends next, then an end.
    TruncateDown,
    /// Nothing moves until both have given up.
    Blackhole,
    /// The foot sees a reset; the hub sees nothing until the foot's next connection is up. Then what the foot had said
    /// last arrives on the old one, and then its end.
    Strand,
    /// Everything is late for a while.
    Delay,
    /// Nothing moves for a while, then all of it arrives.
    Stall,
    /// The next connections are not let through.
    Refuse,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Reset,
        Self::Close,
        Self::HalfCloseUp,
        Self::HalfCloseDown,
        Self::TruncateUp,
        Self::TruncateDown,
        Self::Blackhole,
        Self::Strand,
        Self::Delay,
        Self::Stall,
        Self::Refuse,
    ];
    /// Those that end a connection.
    pub const DEADLY: [Self; 8] = [
        Self::Reset,
        Self::Close,
        Self::HalfCloseUp,
        Self::HalfCloseDown,
        Self::TruncateUp,
        Self::TruncateDown,
        Self::Blackhole,
        Self::Strand,
    ];
    const HARMLESS: [Self; 2] = [Self::Delay, Self::Stall];

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Close => "close",
            Self::HalfCloseUp => "half-close up",
            Self::HalfCloseDown => "half-close down",
            Self::TruncateUp => "truncate up",
            Self::TruncateDown => "truncate down",
            Self::Blackhole => "blackhole",
            Self::Strand => "strand",
            Self::Delay => "delay",
            Self::Stall => "stall",
            Self::Refuse => "refuse",
        }
    }

    /// Whether it ends the connection.
    pub fn is_deadly(self) -> bool {
        Self::DEADLY.contains(&self)
    }

    /// How long it lasts, milliseconds; for [`Fault::Strand`] how long after the next connection the old one ends.
    const fn lasts_ms(self) -> Range<u64> {
        match self {
            Self::Delay => 200..1_000,
            Self::Stall => 100..700,
            Self::Blackhole => 1_500..3_500,
            Self::Strand => 0..1_500,
            Self::HalfCloseUp | Self::HalfCloseDown => 100..1_000,
            Self::Refuse => 100..800,
            _ => 0..1,
        }
    }
}

/// One fault of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Step {
    /// How long after the step before.
    pub(super) after: Duration,
    pub(super) fault: Fault,
    pub(super) lasting: Duration,
}

/// What happens to the connections of one proxy, or of several that share it.
#[derive(Debug, Clone)]
pub struct Plan {
    seed: Option<u64>,
    dealt: Arc<AtomicU64>,
}

impl Plan {
    /// Nothing by itself.
    #[must_use]
    pub fn calm() -> Self {
        Self { seed: None, dealt: Arc::default() }
    }

    /// Faults on every connection, from a seed. Clones go on dealing where the others are.
    #[must_use]
    pub fn raging(seed: u64) -> Self {
        Self { seed: Some(seed), dealt: Arc::default() }
    }

    pub(super) const fn is_calm(&self) -> bool {
        self.seed.is_none()
    }

    /// The faults of the next connection.
    pub(super) fn deal(&self) -> Vec<Step> {
        let Some(seed) = self.seed else { return Vec::new() };
        script(seed, self.dealt.fetch_add(1, Ordering::Relaxed))
    }

    /// How long a fault lasts that a test asks for: the longest of its kind; of one that waits for a new connection twice that,
    /// so that on a busy machine, too, the foot has been welcomed by then.
    pub(super) fn lasting(fault: Fault) -> Duration {
        let longest = Duration::from_millis(fault.lasts_ms().end);
        if fault == Fault::Strand { 2 * longest } else { longest }
    }
}

/// The faults of a connection by its number, the same each time.
fn script(seed: u64, number: u64) -> Vec<Step> {
    let pack = Fault::DEADLY.len() as u64;
    let mut cards = Fault::DEADLY;
    generator(seed, number / pack).shuffle(&mut cards);
    let deadly = cards[usize::try_from(number % pack).unwrap_or_default()];

    let mut random = generator(!seed, number);
    let mut step = |fault: Fault, after_ms: Range<u64>| Step {
        after: Duration::from_millis(random.u64(after_ms)),
        fault,
        lasting: Duration::from_millis(random.u64(fault.lasts_ms())),
    };
    // Now and then it happens during the handshake.
    if number % 5 == 4 {
        return vec![step(deadly, 0..15)];
    }
    let mut steps: Vec<Step> =
        (0..number % 3).map(|n| step(Fault::HARMLESS[usize::from(n % 2 == 1)], 50..500)).collect();
    steps.push(step(deadly, 200..2_000));
    if number % 2 == 1 {
        steps.push(step(Fault::Refuse, 0..1));
    }
    steps
}

fn generator(seed: u64, number: u64) -> fastrand::Rng {
    // Seeds that lie side by side give packs that have nothing in common.
    fastrand::Rng::with_seed(seed.wrapping_add(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

/// A new seed, or the one of `FOOTBRIDGE_FAULT_SEED`, which replays a run.
///
/// # Errors
/// When the machine has no randomness, or the variable no number.
pub fn seed() -> Result<u64> {
    if let Some(seed) = scale::number("FOOTBRIDGE_FAULT_SEED")? {
        return Ok(seed);
    }
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)?;
    // Short enough to be typed.
    Ok(u64::from_le_bytes(bytes) % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_seed_deals_the_same_again_and_another_one_does_not() {
        let deal = |seed| {
            let plan = Plan::raging(seed);
            (0..40).map(|_| plan.deal()).collect::<Vec<_>>()
        };
        assert_eq!(deal(7), deal(7));
        assert_ne!(deal(7), deal(8));
        assert!(Plan::calm().deal().is_empty());
    }

    #[test]
    fn every_pack_has_each_deadly_fault_and_clones_share_the_pack() {
        let (plan, mut kinds) = (Plan::raging(42), HashSet::new());
        let clones = [plan.clone(), plan.clone(), plan];
        for number in 0..Fault::DEADLY.len() {
            let steps = clones[number % clones.len()].deal();
            let deadly: Vec<Fault> = steps.iter().map(|step| step.fault).filter(|fault| fault.is_deadly()).collect();
            assert_eq!(deadly.len(), 1, "{steps:?}");
            kinds.insert(deadly[0].name());
        }
        assert_eq!(kinds.len(), Fault::DEADLY.len(), "{kinds:?}");
    }
}
