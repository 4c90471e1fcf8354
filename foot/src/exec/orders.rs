//! Orders to launchers: which file is executed, with which environment, and what it may reach.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use footbridge_launcher::sandbox::{Grant, Right};
use footbridge_launcher::{Bytes, Order};
use footbridge_shared::ErrorCode;

use super::environment::Inherited;
use super::reach::{self, ReachError};
use super::settings::{ExecSettings, KernelSandbox};
use crate::failure::Failure;
use crate::permissions::Permissions;
use crate::policy::Policy;

/// Makes orders, as one set of permissions and settings says.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    policy: Arc<Policy>,
    write: bool,
    settings: ExecSettings,
    inherited: Inherited,
}

impl Orders {
    /// `variables` are those that go through to what is started.
    pub(crate) fn new(permissions: &Permissions, settings: ExecSettings, variables: Vec<(OsString, OsString)>) -> Self {
        let policy = permissions.policy().clone();
        let inherited = Inherited::new(variables, policy.roots());
        Self { write: permissions.offers_write(), policy, settings, inherited }
    }

    /// Which paths are served.
    pub(super) fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Whether what is started may change what lies in the roots.
    pub(super) const fn write(&self) -> bool {
        self.write
    }

    /// The settings.
    pub(super) const fn settings(&self) -> &ExecSettings {
        &self.settings
    }

    /// Whether the owner has anything confined at all.
    pub(crate) fn confine(&self) -> bool {
        self.settings.sandbox == KernelSandbox::Required
    }

    /// What goes into an order besides what it is for, as a text: where it is the same, an order is.
    pub(crate) fn fingerprint(&self) -> String {
        let Self { policy, write, settings, inherited } = self;
        let (sandbox, read, more) = (settings.sandbox, &settings.extra_read, &settings.extra_write);
        format!("{:?} {:?} {write} {sandbox:?} {read:?} {more:?} {inherited:?}", policy.roots(), policy.never_served())
    }

    /// The file that a command's first word means, started in a folder.
    ///
    /// # Errors
    /// `not_found`: no folder of programs has it.
    pub(super) fn program(&self, word: &str, cwd: &Path) -> Result<PathBuf, Failure> {
        self.inherited.program(word, cwd)
    }

    /// What is granted to everything that is started.
    ///
    /// # Errors
    /// [`ReachError`]: it cannot be kept to what is granted.
    pub(super) fn grants(&self) -> Result<Vec<Grant>, ReachError> {
        reach::grants(&self.policy, self.write, &self.settings, self.inherited.path())
    }

    /// An order. It is confined unless the owner runs everything unconfined, or `confine` is false. Looks at files.
    ///
    /// # Errors
    /// `sandbox_unavailable`: it cannot be kept to what is granted.
    pub(super) fn order(
        &self,
        program: PathBuf,
        argv: Vec<Bytes>,
        env: &BTreeMap<String, String>,
        cwd: PathBuf,
        confine: bool,
    ) -> Result<Order, Failure> {
        let temporary = reach::temporary();
        let grants = if confine && self.settings.sandbox == KernelSandbox::Required {
            let mut grants = self.grants().map_err(|error| {
                let message = "commands cannot be kept to the roots as they are now";
                Failure::not_run(ErrorCode::SandboxUnavailable, message).cause(error)
            })?;
            grants.push(Grant::new(&temporary, Right::ChangeAndExecute));
            Some(grants)
        } else {
            None
        };
        let environment = self.inherited.with(env, &temporary);
        Ok(Order {
            program: program.into(),
            argv,
            environment: environment.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            cwd: cwd.into(),
            temporary: temporary.into(),
            grants,
        })
    }

    /// An order for a program that the owner wrote into the settings: found as a command is, started in `cwd`, which is
    /// relative to the first root. Looks at files.
    ///
    /// # Errors
    /// As [`Self::order`]; `not_found`, `invalid_arguments`.
    pub(crate) fn of_owner(
        &self,
        words: (&str, &[String]),
        env: &BTreeMap<String, String>,
        cwd: Option<&Path>,
        confine: bool,
    ) -> Result<Order, Failure> {
        let (first, rest) = words;
        let root = self.policy.roots().first().cloned().unwrap_or_else(|| PathBuf::from("/"));
        let cwd = cwd.map_or_else(|| root.clone(), |cwd| root.join(cwd));
        let word = |text: &str| Ok::<Bytes, Failure>(super::check_word(text)?.into());
        let argv = std::iter::once(first).chain(rest.iter().map(String::as_str)).map(word).collect::<Result<_, _>>()?;
        self.order(self.program(first, &cwd)?, argv, env, cwd, confine)
    }
}
