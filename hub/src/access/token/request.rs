//! What a new token may be.

use std::collections::BTreeSet;

use footbridge_shared::id::Subject;
use jiff::Timestamp;

use crate::access::{AccessError, require_admin};
use crate::domain::principal::{Principal, Reach, Role};

/// Longest name of a token, in characters.
pub const MAX_TOKEN_NAME_CHARS: usize = 100;
/// Most subjects that a token may name to act for.
pub const MAX_ACT_AS: usize = 100;
/// Most projects that a token may name.
pub const MAX_TOKEN_PROJECTS: usize = 1000;
/// Stands for every subject in [`NewToken::act_as`].
pub const ANYBODY: &str = "*";

/// The token that is asked for.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// What people call it, 1 to [`MAX_TOKEN_NAME_CHARS`] visible characters.
    pub name: Option<String>,
    /// Who it speaks for.
    pub subject: Subject,
    /// What it allows; at least one.
    pub roles: Vec<Role>,
    /// How far it reaches. Projects go with a tenant, and if they are named it is at least one. The tenant need not
    /// exist yet; until it does, the token reaches nothing.
    pub reach: Reach,
    /// Other subjects it may create processes for, or [`ANYBODY`]. Needs the role engine.
    pub act_as: Vec<String>,
    /// When it ends by itself; `None`: never.
    pub expires_at: Option<Timestamp>,
}

impl NewToken {
    /// Refuses what no token can be, and brings the rest into one form: sorted, nothing twice.
    pub(super) fn normalize(mut self, now: Timestamp) -> Result<Self, AccessError> {
        let invalid = |field, reason| Err(AccessError::Invalid { field, reason });
        if let Some(name) = &self.name {
            let chars = name.chars().count();
            if chars == 0 || chars > MAX_TOKEN_NAME_CHARS || name.chars().any(is_invisible) {
                return invalid("name", "use 1 to 100 visible characters");
            }
        }
        if self.roles.is_empty() {
            return invalid("roles", "a token needs at least one role");
        }
        match &self.reach {
            Reach { tenant: None, projects: Some(_) } => {
                return invalid("projects", "projects are those of a tenant, and none is given");
            }
            Reach { projects: Some(projects), .. } if projects.is_empty() => {
                return invalid("projects", "an empty list reaches nothing; leave it out to reach all of the tenant");
            }
            Reach { projects: Some(projects), .. } if projects.len() > MAX_TOKEN_PROJECTS => {
                return invalid("projects", "a token names at most 1000 projects");
            }
            _ => {}
        }
        if self.act_as.len() > MAX_ACT_AS {
            return invalid("actAs", "a token names at most 100 subjects");
        }
        if self.act_as.iter().any(|subject| subject != ANYBODY && Subject::parse(subject).is_err()) {
            return invalid("actAs", "each is a subject, or `*` for everybody");
        }
        if !self.act_as.is_empty() && !self.roles.iter().any(|role| matches!(role, Role::Engine | Role::Admin)) {
            return invalid("actAs", "only a token with the role engine creates processes");
        }
        if self.expires_at.is_some_and(|at| at <= now) {
            return invalid("expiresAt", "that time has passed");
        }
        sort(&mut self.roles);
        if let Some(projects) = &mut self.reach.projects {
            sort(projects);
        }
        if self.act_as.iter().any(|subject| subject == ANYBODY) {
            self.act_as = vec![ANYBODY.to_owned()];
        }
        sort(&mut self.act_as);
        Ok(self)
    }

    /// Refuses what reaches beyond the token that asks for it.
    pub(super) fn check(&self, by: &Principal) -> Result<(), AccessError> {
        require_admin(by)?;
        if !by.reach.contains(&self.reach) {
            return Err(AccessError::BeyondReach("a token can only make tokens within its own reach"));
        }
        // Whoever is admin has every role and may act for everybody within the reach, so neither can exceed it.
        Ok(())
    }
}

fn is_invisible(c: char) -> bool {
    c.is_control() || footbridge_shared::text::is_hidden(c)
}

fn sort<T: Ord>(items: &mut Vec<T>) {
    *items = std::mem::take(items).into_iter().collect::<BTreeSet<_>>().into_iter().collect();
}
