//! Reads the parameters of an `mcp_server`, which have passed their schema. No message quotes what may be a credential.

use std::time::Duration;

use footbridge_mcp::Raw;
use globset::{Glob, GlobSet, GlobSetBuilder};
use http::header::{AUTHORIZATION, HeaderMap, HeaderName};
use reqwest::Url;
use serde_json::value::to_raw_value;

use super::super::auth;
use crate::sources::configured::mcp::config::{
    Auth, Endpoint, GivenArguments, Offered, Program, ServerConfig, SessionMode, Target, Tls,
};
use crate::sources::configured::mcp::redact::Redactor;
use crate::yaml::{KeyPath, Node, Problem, Value, shown};

/// Headers that the protocol itself sets.
const TAKEN_HEADERS: [&str; 12] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
];
/// Keys that only a program has.
const OF_PROGRAMS: [&str; 4] = ["command", "args", "cwd", "env"];
/// Keys that only a server over HTTP has.
const OF_HTTP: [&str; 4] = ["url", "headers", "auth", "tls"];

/// How a server is spoken to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Stdio,
    Http,
    Sse,
}

/// Reads them; `None`: problems were reported.
pub(super) fn read(node: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<ServerConfig> {
    let before = problems.len();
    let transport = transport(node, path, problems)?;
    let mut secrets = Vec::new();
    let target = match transport {
        Transport::Stdio => program(node, path, problems, &mut secrets).map(Target::Stdio),
        Transport::Http | Transport::Sse => {
            let legacy = transport == Transport::Sse;
            endpoint(node, path, legacy, problems, &mut secrets).map(|endpoint| Target::Http(Box::new(endpoint)))
        }
    };
    let session = match node.get("session").and_then(Node::as_text) {
        Some("shared") => SessionMode::Shared,
        Some("subject") => SessionMode::Subject,
        Some("process") => SessionMode::Process,
        _ if transport == Transport::Stdio => SessionMode::Process,
        _ => SessionMode::Shared,
    };
    let include = node.get("include").map(|node| globs(node, &path.key("include"), problems));
    let exclude = node.get("exclude").map_or_else(GlobSet::empty, |node| globs(node, &path.key("exclude"), problems));
    let seconds = |key: &str| number(node, key).map(Duration::from_secs);
    let config = ServerConfig {
        target: target?,
        call_timeout: seconds("timeoutSeconds"),
        init_timeout: seconds("initTimeoutSeconds")
            .unwrap_or(crate::sources::configured::mcp::config::DEFAULT_INIT_TIMEOUT),
        session,
        arguments: GivenArguments { defaults: given(node.get("defaultArgs")), forced: given(node.get("forceArgs")) },
        offered: Offered { include, exclude },
        concurrency: number(node, "concurrency").and_then(|number| usize::try_from(number).ok()),
        redactor: Redactor::new(secrets),
        digest: *blake3::hash(node.to_json().to_string().as_bytes()).as_bytes(),
    };
    (problems.len() == before).then_some(config)
}

fn number(node: &Node, key: &str) -> Option<u64> {
    match &node.get(key)?.value {
        Value::Number(number, _) => number.as_u64(),
        _ => None,
    }
}

fn transport(node: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> Option<Transport> {
    let said = match node.get("transport").and_then(Node::as_text) {
        Some("stdio") => Some(Transport::Stdio),
        Some("http") => Some(Transport::Http),
        Some("sse") => Some(Transport::Sse),
        _ => None,
    };
    let implied = match (node.get("command"), node.get("url")) {
        (Some(_), None) => Transport::Stdio,
        (None, Some(_)) => said.filter(|said| *said != Transport::Stdio).unwrap_or(Transport::Http),
        (None, None) => {
            let message = "where the server is, is missing: give `command` or `url`";
            problems.push(Problem::new(node.at, path.clone(), message));
            return None;
        }
        (Some(_), Some(url)) => {
            let message = "a server is a program or is at an address: `command` and `url` exclude each other";
            problems.push(Problem::new(url.at, path.key("url"), message));
            return None;
        }
    };
    if said.is_some_and(|said| said != implied) {
        let at = node.get("transport").map_or(node.at, |node| node.at);
        let (one, other) =
            if implied == Transport::Stdio { ("`stdio`", "command") } else { ("`http` or `sse`", "url") };
        let message = format!("it must be {one}, since there is `{other}`");
        problems.push(Problem::new(at, path.key("transport"), message));
        return None;
    }
    let (foreign, only) = match implied {
        Transport::Stdio => (OF_HTTP, "a server with `url`"),
        Transport::Http | Transport::Sse => (OF_PROGRAMS, "a server with `command`"),
    };
    for key in foreign {
        if let Some(entry) = node.entry(key) {
            problems.push(Problem::new(entry.key_at, path.key(key), format!("only {only} has this key")));
        }
    }
    Some(implied)
}

fn program(node: &Node, path: &KeyPath, problems: &mut Vec<Problem>, secrets: &mut Vec<String>) -> Option<Program> {
    let mut wrong = |node: &Node, key: KeyPath, message: &str| {
        problems.push(Problem::new(node.at, key, message));
    };
    let command = node.get("command")?;
    let text = command.as_text()?;
    let (name, absolute) = (!text.contains('/'), text.starts_with('/'));
    if (!name && !absolute) || text.contains('\0') || text.trim() != text {
        wrong(
            command,
            path.key("command"),
            "it must be the name of a program, or its absolute path; its arguments go to `args`",
        );
    }
    let mut args = Vec::new();
    if let Some(Value::List(items)) = node.get("args").map(|node| &node.value) {
        for (index, item) in items.iter().enumerate() {
            match item.as_text() {
                Some(text) if !text.contains('\0') => args.push(text.to_owned()),
                _ => wrong(item, path.key("args").index(index), "it must be a text; write numbers in quotes"),
            }
        }
    }
    let cwd = node.get("cwd");
    if let Some(cwd) = cwd
        && !cwd.as_text().is_some_and(|text| text.starts_with('/') && !text.contains('\0'))
    {
        wrong(cwd, path.key("cwd"), "it must be an absolute path");
    }
    let mut env = Vec::new();
    if let Some(Value::Map(entries)) = node.get("env").map(|node| &node.value) {
        for entry in entries {
            let key = path.key("env").key(&entry.key);
            if entry.key.is_empty() || entry.key.contains(['=', '\0']) {
                wrong(&entry.node, key, "this is no name of a variable");
                continue;
            }
            match entry.node.as_text() {
                Some(text) if !text.contains('\0') => {
                    secrets.push(text.to_owned());
                    env.push((entry.key.clone(), text.to_owned()));
                }
                _ => wrong(&entry.node, key, "it must be a text; write numbers and flags in quotes"),
            }
        }
    }
    let cwd = cwd.and_then(Node::as_text).map(str::to_owned);
    Some(Program { command: text.to_owned(), args, cwd, env })
}

fn endpoint(
    node: &Node,
    path: &KeyPath,
    legacy: bool,
    problems: &mut Vec<Problem>,
    secrets: &mut Vec<String>,
) -> Option<Endpoint> {
    let mut headers = headers(node, path, problems, secrets);
    let auth = match node.get("auth") {
        Some(auth) => {
            texts_of(auth, secrets);
            auth::read(auth, &path.key("auth"), problems)
        }
        None => Some(Auth::None),
    };
    let tls = node.get("tls").map_or(Some(Tls::default()), |tls| auth::read_tls(tls, &path.key("tls"), problems));
    let url_node = node.get("url")?;
    let mut wrong = |message: &str| problems.push(Problem::new(url_node.at, path.key("url"), message));
    let text = url_node.as_text()?;
    let Some(mut url) = Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme())) else {
        wrong("this is no address that starts with https:// or http://");
        return None;
    };
    // Keys may stand anywhere in it.
    secrets.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
    secrets.extend(url.query().map(str::to_owned));
    let (mut auth, tls) = (auth?, tls?);
    if !url.username().is_empty() || url.password().is_some() {
        if !matches!(auth, Auth::None) {
            wrong("credentials stand twice: in the address, and under `auth`");
            return None;
        }
        let decoded = |part: &str| percent_decoded(part);
        let (user, password) = (decoded(url.username()), decoded(url.password().unwrap_or_default()));
        secrets.push(password.clone());
        auth = auth::basic(&user, &password)?;
        // Neither can be refused for an address with a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
    }
    url.set_fragment(None);
    let mut oauth = None;
    match auth {
        Auth::None => {}
        Auth::Query(name, value) => drop(url.query_pairs_mut().append_pair(&name, &value)),
        Auth::Header(name, _) if headers.contains_key(&name) => {
            let message = format!("the header `{name}` stands twice: here, and through the credentials");
            let at = node.get("headers").map_or(node.at, |node| node.at);
            problems.push(Problem::new(at, path.key("headers"), message));
        }
        Auth::Header(name, value) => {
            secrets.extend(value.to_str().ok().map(str::to_owned));
            headers.insert(name, value);
        }
        Auth::ClientCredentials(_) if headers.contains_key(AUTHORIZATION) => {
            let at = node.get("headers").map_or(node.at, |node| node.at);
            let message = "the header `authorization` stands twice: here, and through the credentials";
            problems.push(Problem::new(at, path.key("headers"), message));
        }
        Auth::ClientCredentials(credentials) => oauth = Some(credentials),
    }
    Some(Endpoint { url, headers, oauth, tls, legacy })
}

fn headers(node: &Node, path: &KeyPath, problems: &mut Vec<Problem>, secrets: &mut Vec<String>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Some(Value::Map(entries)) = node.get("headers").map(|node| &node.value) else { return headers };
    for entry in entries {
        let key = path.key("headers").key(&entry.key);
        let Ok(name) = HeaderName::from_bytes(entry.key.as_bytes()) else {
            problems.push(Problem::new(entry.key_at, key, "this is no name of a header"));
            continue;
        };
        if TAKEN_HEADERS.contains(&name.as_str()) {
            problems.push(Problem::new(entry.key_at, key, "the protocol itself sets this header"));
        } else if let Some(value) = entry.node.as_text().and_then(auth::header_value) {
            secrets.extend(entry.node.as_text().map(str::to_owned));
            if headers.insert(name, value).is_some() {
                let message = format!("the header `{}` stands twice; names of headers have no case", shown(&entry.key));
                problems.push(Problem::new(entry.key_at, key, message));
            }
        } else {
            let message = "it must be a text of characters that a header may hold; write numbers in quotes";
            problems.push(Problem::new(entry.node.at, key, message));
        }
    }
    headers
}

fn percent_decoded(part: &str) -> String {
    // A form's pair, but for the plus sign.
    let pair = format!("={}", part.replace('+', "%2B"));
    let decoded = Url::parse(&format!("http://x/?{pair}")).ok();
    decoded.and_then(|url| url.query_pairs().next().map(|(_, value)| value.into_owned())).unwrap_or_default()
}

/// Every text below, wherever a credential may stand.
fn texts_of(node: &Node, secrets: &mut Vec<String>) {
    const PUBLIC: [&str; 6] = ["type", "in", "name", "tokenUrl", "scopes", "clientId"];
    let Value::Map(entries) = &node.value else { return };
    let secret = entries.iter().filter(|entry| !PUBLIC.contains(&entry.key.as_str()));
    secrets.extend(secret.filter_map(|entry| entry.node.as_text()).map(str::to_owned));
}

fn globs(node: &Node, path: &KeyPath, problems: &mut Vec<Problem>) -> GlobSet {
    let mut set = GlobSetBuilder::new();
    let Value::List(items) = &node.value else { return GlobSet::empty() };
    for (index, item) in items.iter().enumerate() {
        let Some(text) = item.as_text() else { continue };
        match Glob::new(text) {
            Ok(glob) => drop(set.add(glob)),
            Err(error) => {
                let message = format!("this is no glob: {}", shown(&error.kind().to_string()));
                problems.push(Problem::new(item.at, path.index(index), message));
            }
        }
    }
    match set.build() {
        Ok(set) => set,
        Err(error) => {
            problems.push(Problem::new(node.at, path.clone(), format!("these globs are too much: {}", error.kind())));
            GlobSet::empty()
        }
    }
}

fn given(node: Option<&Node>) -> Vec<(String, Raw)> {
    let Some(Value::Map(entries)) = node.map(|node| &node.value) else { return Vec::new() };
    entries.iter().filter_map(|entry| Some((entry.key.clone(), to_raw_value(&entry.node.to_json()).ok()?))).collect()
}
