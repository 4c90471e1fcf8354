//! The tokens of `up`: one that may do everything, for the commands, and one that may only connect the foot. Both are
//! kept from one start to the next, beside the data they are valid for.

use std::path::{Path, PathBuf};

use footbridge_shared::id::Subject;

use crate::access::NewToken;
use crate::app::Hub;
use crate::cli::error::CliError;
use crate::config::secret::Secret;
use crate::config::state::{read_token, write_token};
use crate::domain::principal::{Reach, Role};
use crate::domain::scope::Scope;

/// File of the token that may do everything.
const ADMIN_FILE: &str = "token";
/// File of the foot's token.
const FOOT_FILE: &str = "foot.token";

/// The tokens, and where they lie.
pub(super) struct Ready {
    pub(super) admin: Secret,
    pub(super) admin_file: PathBuf,
    pub(super) foot_file: PathBuf,
}

/// Makes sure that the scope and the tokens are there; the foot's only if there is to be a foot.
pub(super) async fn ready(
    hub: &Hub,
    scope: &Scope,
    user: &str,
    data: &Path,
    with_foot: bool,
) -> Result<Ready, CliError> {
    hub.tenants().ensure(scope).await.map_err(failed)?;
    let subject = Subject::parse(user).map_err(failed)?;
    let data = std::path::absolute(data).map_err(|source| CliError::File { path: data.to_owned(), source })?;
    let admin_file = data.join(ADMIN_FILE);
    let foot_file = data.join(FOOT_FILE);
    let everything = NewToken {
        name: Some("footbridge up".to_owned()),
        subject: subject.clone(),
        roles: vec![Role::Admin],
        reach: Reach::HUB,
        act_as: Vec::new(),
        expires_at: None,
    };
    let connect = NewToken {
        name: Some("the foot of footbridge up".to_owned()),
        roles: vec![Role::Foot],
        reach: Reach { tenant: Some(scope.tenant.clone()), projects: Some(vec![scope.project.clone()]) },
        ..everything.clone()
    };
    let admin = kept_or_new(hub, &admin_file, everything).await?;
    if with_foot {
        kept_or_new(hub, &foot_file, connect).await?;
    }
    Ok(Ready { admin, admin_file, foot_file })
}

/// The token of a file, if the hub still takes it for what is wanted; else a new one, which takes its place.
async fn kept_or_new(hub: &Hub, file: &Path, wanted: NewToken) -> Result<Secret, CliError> {
    if let Ok(kept) = read_token(file)
        && let Some(principal) = hub.tokens().authenticate(kept.reveal())
        && principal.subject == wanted.subject
        && principal.roles == wanted.roles
        && principal.reach == wanted.reach
    {
        return Ok(kept);
    }
    let created = hub.tokens().create_first(wanted).await.map_err(failed)?;
    let token = Secret::new(created.text.expose());
    write_token(file, &token).map_err(|source| CliError::File { path: file.to_owned(), source })?;
    Ok(token)
}

fn failed(error: impl std::fmt::Display) -> CliError {
    CliError::Hub { message: error.to_string(), hint: None }
}
