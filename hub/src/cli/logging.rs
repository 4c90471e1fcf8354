//! The log of a hub in this process: to standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use super::error::CliError;

/// Starts to log.
///
/// # Errors
/// The filter is none.
pub(super) fn start(filter: &str) -> Result<(), CliError> {
    let filter = EnvFilter::try_new(filter).map_err(|error| CliError::usage(format!("log filter: {error}")))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // It would be reported where it failed, on standard error, and that by a panic: losing the log must lose nothing else.
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .finish();
    // Somebody else logs already: as good.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}
