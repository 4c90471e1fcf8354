//! Callers, one or many, and what they saw.

use std::future::Future;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use crate::Result;

/// What a round of calls came to.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// Median time of a call, microseconds.
    pub p50_us: f64,
    /// 99th percentile, microseconds.
    pub p99_us: f64,
    /// Calls a second.
    pub per_second: f64,
}

impl Measured {
    /// The medians over rounds, each figure on its own: one disturbed round does not count.
    pub fn median(rounds: &[Self]) -> Self {
        let middle = |figure: fn(&Self) -> f64| {
            let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
            figures.sort_by(f64::total_cmp);
            figures.get(figures.len() / 2).copied().unwrap_or_default()
        };
        Self { p50_us: middle(|m| m.p50_us), p99_us: middle(|m| m.p99_us), per_second: middle(|m| m.per_second) }
    }
}

/// Runs `calls` calls spread over `callers` callers, at least one each, each with its own `call` made by `caller`.
///
/// # Errors
/// When any call fails.
pub async fn measure<C, F, Fut>(callers: usize, calls: usize, mut caller: C) -> Result<Measured>
where
    C: FnMut() -> F,
    F: FnMut() -> Fut + Send + 'static,
    Fut: Future<Output = Result<()>> + Send,
{
    let share = (calls / callers).max(1);
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for _ in 0..callers {
        let mut call = caller();
        tasks.spawn(async move {
            let mut times = Vec::with_capacity(share);
            for _ in 0..share {
                let begun = Instant::now();
                call().await?;
                times.push(begun.elapsed());
            }
            Result::<Vec<Duration>>::Ok(times)
        });
    }
    let mut histogram = Histogram::<u64>::new(3)?;
    while let Some(times) = tasks.join_next().await {
        for time in times?? {
            histogram.record(u64::try_from(time.as_nanos())?)?;
        }
    }
    let took = started.elapsed();
    let micros = |quantile| histogram.value_at_quantile(quantile) as f64 / 1_000.0;
    Ok(Measured { p50_us: micros(0.50), p99_us: micros(0.99), per_second: histogram.len() as f64 / took.as_secs_f64() })
}
