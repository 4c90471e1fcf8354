//! A token made in the data folder of a stopped hub. Whoever has the folder has everything in it, so nobody is asked.

use std::path::Path;
use std::sync::Arc;

use footbridge_shared::id::{NameError, ProjectName, Subject, TenantName};
use jiff::{SignedDuration, Timestamp};

use crate::access::{NewToken, Tokens};
use crate::api::tokens::{CreateToken, TokenCreated};
use crate::cli::error::CliError;
use crate::clock::{Clock as _, SystemClock};
use crate::domain::principal::Reach;
use crate::store::Store as _;
use crate::store::lock::{DataLock, LockError};
use crate::store::sqlite::SqliteStore;

/// Makes a token in a data folder, which is made if it is not there.
pub(super) async fn create(data: &Path, request: CreateToken) -> Result<TokenCreated, CliError> {
    let request = checked(request, SystemClock.now())?;
    let _lock = DataLock::acquire(data).map_err(|error| {
        let hint = matches!(error, LockError::Held { .. })
            .then(|| "a hub runs on it: stop it, or make the token through it, without --data".to_owned());
        CliError::Hub { message: error.to_string(), hint }
    })?;
    let clock = Arc::new(SystemClock);
    let store = Arc::new(SqliteStore::open(data, clock.clone()).map_err(failed)?);
    let tokens = Tokens::load(store.clone(), clock).await.map_err(failed)?;
    let created = tokens.create_first(request).await.map_err(failed)?;
    store.close().await.map_err(failed)?;
    Ok(TokenCreated { view: created.info.view(), token: created.text.expose().to_owned() })
}

fn checked(request: CreateToken, now: Timestamp) -> Result<NewToken, CliError> {
    let wrong = |error: NameError| CliError::usage(error.to_string());
    let projects = request.projects.map(|projects| projects.iter().map(|p| ProjectName::parse(p)).collect());
    let ends = |seconds| {
        let span = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        now.checked_add(span).map_err(|_| CliError::usage("--expires lies too far away"))
    };
    Ok(NewToken {
        name: request.name,
        subject: Subject::parse(&request.subject).map_err(wrong)?,
        roles: request.roles,
        reach: Reach {
            tenant: request.tenant.as_deref().map(TenantName::parse).transpose().map_err(wrong)?,
            projects: projects.transpose().map_err(wrong)?,
        },
        act_as: request.act_as,
        expires_at: request.expires_in_seconds.map(ends).transpose()?,
    })
}

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::Hub { message: error.to_string(), hint: None }
}

#[cfg(test)]
mod tests;
