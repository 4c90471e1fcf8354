//! What the owner says of a local MCP server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use footbridge_shared::id::EntryName;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use http::HeaderMap;
use reqwest::Url;
use serde::Deserialize;

use crate::permissions::Mode;

/// How long a server may take to answer the handshake, unless the owner says otherwise.
const DEFAULT_INIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest time that the owner may set, in seconds.
const MAX_SECONDS: u64 = 24 * 60 * 60;
/// Calls of one server that run at once, unless the owner says otherwise.
const DEFAULT_CONCURRENCY: usize = 16;
/// Most that the owner may set.
const MAX_CONCURRENCY: usize = 1024;

/// Who shares a connection to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SessionMode {
    /// All calls of one subject.
    Subject,
    /// All calls of one process, else of one MCP session, else of one subject.
    Process,
    /// Everybody.
    Shared,
}

/// Which way the messages go, as it stands in the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// Over the standard streams of a program that is started here.
    Stdio,
    /// Over streamable HTTP.
    Http,
    /// Over HTTP with server-sent events, as servers of 2024-11-05 want it.
    Sse,
}

/// A server as it stands in the settings.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ServerText {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Option<String>,
    pub(crate) confine: Option<bool>,
    pub(crate) url: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) transport: Option<Transport>,
    pub(crate) include: Vec<String>,
    pub(crate) exclude: Vec<String>,
    pub(crate) timeout_seconds: Option<u64>,
    pub(crate) init_timeout_seconds: Option<u64>,
    pub(crate) session: Option<SessionMode>,
    pub(crate) concurrency: Option<usize>,
    pub(crate) permission: Option<Mode>,
    pub(crate) disabled: bool,
}

/// Where a server is.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// In a program that is started here.
    Program {
        /// Its file, or its name in PATH.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that are set for it.
        env: BTreeMap<String, String>,
        /// Where it starts; relative to the first root, which is the default.
        cwd: Option<PathBuf>,
        /// Whether the kernel keeps it within what is granted, as it does commands. Not by default: the owner names the
        /// program, as in any other client of MCP, and most of them need caches, packages and settings of their own.
        confine: bool,
    },
    /// At an address.
    Http {
        /// Its endpoint.
        url: Url,
        /// Sent with every request.
        headers: HeaderMap,
        /// Whether it wants the older way over server-sent events.
        sse: bool,
    },
}

/// A server that makes sense, from [`ServerText::check`]. Values of its environment and its headers may be secrets: they
/// are not shown.
#[derive(Clone)]
pub(crate) struct ServerSettings {
    /// The pack of its tools.
    pub(crate) name: EntryName,
    /// Where it is.
    pub(crate) target: Target,
    /// Which of its tools are offered, by their own names; empty: all.
    include: Vec<String>,
    /// Which are not, whatever `include` says.
    exclude: Vec<String>,
    filter: (Option<GlobSet>, GlobSet),
    /// How long a call may go without a sign of life.
    pub(crate) timeout: Option<Duration>,
    /// How long the handshake may take.
    pub(crate) init_timeout: Duration,
    /// Who shares a connection.
    pub(crate) session: SessionMode,
    /// Calls that run at once.
    pub(crate) concurrency: usize,
    /// What becomes of calls that no rule speaks of.
    pub(crate) permission: Mode,
    /// It is not reached, and no other one of its name.
    pub(crate) disabled: bool,
}

/// A server of the settings that is not reached, though the rest of them is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Its name, as it can be shown.
    pub(crate) name: String,
    /// Why, for the owner.
    pub(crate) why: String,
}

impl PartialEq for ServerSettings {
    fn eq(&self, other: &Self) -> bool {
        self.reaches_as(other)
            && (&self.include, &self.exclude, self.timeout) == (&other.include, &other.exclude, other.timeout)
            && (self.permission, self.disabled) == (other.permission, other.disabled)
    }
}

impl fmt::Debug for ServerSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ServerSettings {
    /// Whether connections to the one are as good as to the other: what else differs is said of its tools.
    pub(crate) fn reaches_as(&self, other: &Self) -> bool {
        self.name == other.name
            && self.target == other.target
            && (self.init_timeout, self.session, self.concurrency)
                == (other.init_timeout, other.session, other.concurrency)
    }

    /// Whether a tool of this name is offered.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let (include, exclude) = &self.filter;
        include.as_ref().is_none_or(|include| include.is_match(tool)) && !exclude.is_match(tool)
    }

    /// How it is reached, in a word.
    pub(crate) fn transport(&self) -> &'static str {
        match &self.target {
            Target::Program { .. } => "stdio",
            Target::Http { sse: false, .. } => "http",
            Target::Http { sse: true, .. } => "sse",
        }
    }
}

impl ServerText {
    /// Its keys.
    pub(crate) const KEYS: [&str; 16] = [
        "command",
        "args",
        "env",
        "cwd",
        "confine",
        "url",
        "headers",
        "transport",
        "include",
        "exclude",
        "timeoutSeconds",
        "initTimeoutSeconds",
        "session",
        "concurrency",
        "permission",
        "disabled",
    ];

    /// Looks whether it makes sense. `path` reads a path of the settings.
    ///
    /// # Errors
    /// Which key is wrong, and why, for whoever wrote it. No value is quoted that may be a secret.
    pub(crate) fn check(
        self,
        name: EntryName,
        path: &dyn Fn(&str) -> Result<PathBuf, String>,
    ) -> Result<ServerSettings, String> {
        let is_program = match (&self.command, &self.url, self.transport) {
            (Some(_), None, None | Some(Transport::Stdio)) => true,
            (None, Some(_), None | Some(Transport::Http | Transport::Sse)) => false,
            (None, None, _) => return Err("give `command`, or `url`".to_owned()),
            (Some(_), Some(_), _) => return Err("`command` and `url` exclude each other".to_owned()),
            (Some(_), None, Some(_)) => return Err("`transport` of a `command` is stdio".to_owned()),
            (None, Some(_), Some(Transport::Stdio)) => return Err("`transport` of a `url` is http or sse".to_owned()),
        };
        let timeout = self.timeout_seconds.map(|seconds| duration("timeoutSeconds", seconds)).transpose()?;
        let init_timeout = self.init_timeout_seconds.map(|seconds| duration("initTimeoutSeconds", seconds));
        let concurrency = self.concurrency.unwrap_or(DEFAULT_CONCURRENCY);
        if !(1..=MAX_CONCURRENCY).contains(&concurrency) {
            return Err(format!("`concurrency` is 1 to {MAX_CONCURRENCY}"));
        }
        let include = (!self.include.is_empty()).then(|| globs("include", &self.include)).transpose()?;
        let filter = (include, globs("exclude", &self.exclude)?);
        let default_session = if is_program { SessionMode::Process } else { SessionMode::Shared };
        let (session, permission) = (self.session.unwrap_or(default_session), self.permission.unwrap_or(Mode::Allow));
        let (include, exclude, disabled) = (self.include.clone(), self.exclude.clone(), self.disabled);
        let init_timeout = init_timeout.transpose()?.unwrap_or(DEFAULT_INIT_TIMEOUT);
        let target = if is_program { self.program(path)? } else { self.http()? };
        Ok(ServerSettings {
            name,
            target,
            include,
            exclude,
            filter,
            timeout,
            init_timeout,
            session,
            concurrency,
            permission,
            disabled,
        })
    }

    fn program(self, path: &dyn Fn(&str) -> Result<PathBuf, String>) -> Result<Target, String> {
        if !self.headers.is_empty() {
            return Err("`headers` belong to a `url`".to_owned());
        }
        let command = self.command.unwrap_or_default();
        if command.is_empty() {
            return Err("`command` is empty".to_owned());
        }
        let word = |text: &String| crate::exec::check_word(text).map(drop).map_err(|failure| failure.message);
        std::iter::once(&command).chain(&self.args).try_for_each(word)?;
        crate::exec::check_environment(&self.env).map_err(|failure| format!("`env`: {}", failure.message))?;
        // `~/` and what is relative to the first root, or absolute.
        let cwd = self.cwd.map(|cwd| if cwd.starts_with('~') { path(&cwd) } else { Ok(cwd.into()) }).transpose()?;
        let command = if command.starts_with("~/") {
            path(&command)?.to_str().ok_or("`command` is no text")?.to_owned()
        } else {
            command
        };
        Ok(Target::Program { command, args: self.args, env: self.env, cwd, confine: self.confine.unwrap_or(false) })
    }

    fn http(self) -> Result<Target, String> {
        for (key, is_there) in [
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
            ("cwd", self.cwd.is_some()),
            ("confine", self.confine.is_some()),
        ] {
            if is_there {
                return Err(format!("`{key}` belongs to a `command`"));
            }
        }
        let url = Url::parse(&self.url.unwrap_or_default()).map_err(|error| format!("`url`: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err("`url` begins with http:// or https://".to_owned());
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &self.headers {
            let shown = crate::failure::shown(name);
            let known = http::HeaderName::try_from(name.as_str());
            let known = known.map_err(|_| format!("`headers`: `{shown}` is no name of a header"))?;
            let mut value = http::HeaderValue::try_from(value.as_str())
                .map_err(|_| format!("`headers`: the value of `{shown}` cannot stand in a header"))?;
            value.set_sensitive(true);
            headers.insert(known, value);
        }
        Ok(Target::Http { url, headers, sse: self.transport == Some(Transport::Sse) })
    }
}

fn duration(key: &str, seconds: u64) -> Result<Duration, String> {
    if (1..=MAX_SECONDS).contains(&seconds) {
        Ok(Duration::from_secs(seconds))
    } else {
        Err(format!("`{key}` is 1 to {MAX_SECONDS}"))
    }
}

fn globs(key: &str, patterns: &[String]) -> Result<GlobSet, String> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let glob = GlobBuilder::new(pattern).case_insensitive(true).build();
        set.add(glob.map_err(|error| format!("`{key}`: {error}"))?);
    }
    set.build().map_err(|error| format!("`{key}`: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str) -> Result<ServerSettings, String> {
        let text: ServerText = serde_saphyr::from_str(yaml).map_err(|error| error.to_string())?;
        text.check(EntryName::parse("x").unwrap(), &|path| Ok(PathBuf::from(path.replace('~', "/home/ada"))))
    }

    #[test]
    fn what_is_not_said_follows_from_where_it_is() {
        let program = check("command: ~/bin/server\nargs: [a]\ncwd: sub").unwrap();
        assert_eq!(
            (program.session, program.permission, program.transport()),
            (SessionMode::Process, Mode::Allow, "stdio")
        );
        let Target::Program { command, cwd, confine, .. } = program.target else { panic!("a program") };
        assert_eq!((command.as_str(), cwd, confine), ("/home/ada/bin/server", Some("sub".into()), false));
        let http =
            check("url: http://localhost:1/mcp\nheaders: {Authorization: Bearer s3cret}\ntransport: sse").unwrap();
        assert_eq!((http.session, http.transport()), (SessionMode::Shared, "sse"));
        assert!(!format!("{http:?}").contains("s3cret"));
    }

    #[test]
    fn include_and_exclude_are_about_the_servers_own_names() {
        let settings = check("command: a\ninclude: ['get*', Put]\nexclude: ['*secret*']").unwrap();
        let offered = ["getThing", "put", "get_secret", "delete"].map(|tool| settings.offers(tool));
        assert_eq!(offered, [true, true, false, false]);
        assert!(check("command: a").unwrap().offers("anything"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_key() {
        for (yaml, part) in [
            ("args: [a]", "`command`, or `url`"),
            ("{command: a, url: 'http://x'}", "exclude each other"),
            ("{command: a, transport: http}", "`transport`"),
            ("{url: 'http://x', transport: stdio}", "`transport`"),
            ("{url: 'ftp://x'}", "`url`"),
            ("{url: 'http://x', env: {A: b}}", "`env`"),
            ("{url: 'http://x', headers: {'a b': c}}", "`a b`"),
            ("{url: 'http://x', headers: {a: \"s3\\ncret\"}}", "`a`"),
            ("{command: a, headers: {a: b}}", "`headers`"),
            ("{command: a, env: {'A B': x}}", "`env`"),
            ("{command: a, timeoutSeconds: 0}", "`timeoutSeconds`"),
            ("{command: a, concurrency: 0}", "`concurrency`"),
            ("{command: a, include: ['[']}", "`include`"),
            ("{command: a, comand: b}", "comand"),
        ] {
            let error = check(yaml).map(|_| ()).unwrap_err();
            assert!(error.contains(part) && !error.contains("cret"), "{yaml}: {error}");
        }
    }
}
