//! What a script may use, each limit with its unit.

use std::time::Duration;

/// Memory of one script's heap, in bytes.
pub const MEMORY_BYTES: usize = 64 * 1024 * 1024;
/// Extra heap for reading a result or an exception out of a script that filled its own, in bytes.
pub(super) const MEMORY_HEADROOM_BYTES: usize = 4 * 1024 * 1024;
/// Stack of one script, in bytes.
pub const STACK_BYTES: usize = 1024 * 1024;
/// Loop turns and function calls between two looks at clock and budget: how often QuickJS asks its interrupt handler.
pub(super) const STEPS_PER_TICK: u64 = 10_000;
/// Loop turns and function calls of one run: three seconds of an empty loop, half a minute of one that does something.
pub const MAX_STEPS: u64 = 500_000_000;
/// Longest source, in bytes.
pub const MAX_SOURCE_BYTES: usize = 1024 * 1024;
/// Most JSON that goes into a run as inputs and parameters, in bytes.
pub const MAX_INPUT_BYTES: usize = 8 * 1024 * 1024;
/// Largest result, and largest parameters of one inner call, in bytes of JSON.
pub const MAX_VALUE_BYTES: usize = 8 * 1024 * 1024;
/// Largest answer that a tool or document hands to a script, in bytes of JSON.
pub const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;
/// How deep JSON may nest on its way in or out: below the 128 that JSON readers commonly stop at.
pub const MAX_VALUE_DEPTH: usize = 100;
/// Values in one piece of JSON on its way in or out.
pub const MAX_VALUE_NODES: usize = 1_000_000;
/// Longest message of an exception that is passed on, in characters.
pub(super) const MAX_MESSAGE_CHARS: usize = 2_000;
/// Longest class name of an exception that is passed on, in characters.
pub(super) const MAX_CLASS_CHARS: usize = 100;
/// Lines that one run may log; the rest is dropped.
pub const MAX_LOG_LINES: u32 = 200;
/// Longest line in the log, in characters.
pub const MAX_LOG_CHARS: usize = 2_000;

/// How long past its deadline a worker has to say so itself, before it is killed.
pub const KILL_GRACE: Duration = Duration::from_millis(100);
/// How long an inner call that was cancelled has to say what became of it.
pub(super) const INNER_GRACE: Duration = Duration::from_millis(50);

/// Workers that run scripts at once, at each depth of nesting, unless configured.
pub const DEFAULT_WORKERS: usize = 16;
/// Workers of one tenant at once, at each depth of nesting, unless configured.
pub const DEFAULT_PER_TENANT: usize = 8;
/// Callers that may wait for a worker, at each depth of nesting, unless configured.
pub const DEFAULT_QUEUE: usize = 256;
/// What `script_busy` suggests to wait, in milliseconds.
pub(super) const BUSY_RETRY_AFTER_MS: u64 = 250;
/// Scripts that one process runs before it is replaced.
pub(super) const MAX_RUNS: u32 = 500;
/// Workers that are kept however long nothing runs.
pub(super) const WARM_WORKERS: usize = 1;
/// How long a surplus worker is kept with nothing to do, unless configured.
pub const DEFAULT_IDLE: Duration = Duration::from_secs(60);
/// Time between two looks for surplus workers, at least.
pub(super) const SHORTEST_TIDYING: Duration = Duration::from_millis(10);
/// New processes that one call tries before it gives up, when they end before they take the script.
pub(super) const START_ATTEMPTS: usize = 3;
/// Priority of a worker below the hub's, as for `nice`.
pub(super) const NICE: i32 = 5;
