//! Calls over MCP: what the hub costs as a server, what it adds between a client and a server, and what it keeps.

use serde_json::{Value, json};

use super::callers::{Answer, EchoSocket, Post};
use super::effort::Effort;
use super::load::{Measured, measure};
use super::mcp_callers::{Manner, ToolCalls};
use super::stage::{Comparison, Stage, server};
use super::table::{Row, print};
use crate::Result;
use crate::clients::raw::Target;
use crate::eventually::eventually;
use crate::process::Process;

/// Bytes that a call carries, and gets back.
const PAYLOAD: usize = 1024;
/// Callers at once.
const CALLERS: [usize; 2] = [1, 32];
/// The least that the answer of a small tool has, bytes.
const SMALL: usize = 40;
/// What a hub may keep resident, MiB.
const RESIDENT_MIB: f64 = 60.0;

/// A hub with a foot and a server behind it, and that server.
struct Subjects {
    stage: Stage,
    comparison: Comparison,
    /// The hub's endpoint.
    hub: Target,
    /// The server, as callers reach it directly.
    direct: [Target; 2],
    _server: Process,
}

/// Measures and prints.
///
/// # Errors
/// When any part does not come up, or any call fails.
pub(super) async fn run(effort: Effort) -> Result<()> {
    let subjects = Subjects::set().await?;
    let (mut own, mut behind) = (Vec::new(), Vec::new());
    for callers in CALLERS {
        for manner in Manner::ALL {
            own.extend(subjects.as_a_server(effort, manner, callers).await?);
            behind.extend(subjects.in_between(effort, manner, callers).await?);
        }
    }
    print("MCP: client → hub (/mcp), 1 KiB; comparison: an echo server on the official Rust library", &own);
    print(
        "MCP server behind the hub, 1 KiB; comparison: one more HTTP hop (bare echo), and the server itself",
        &behind,
    );
    let kept = subjects.kept(effort).await?;
    print(&format!("Memory of the hub over {} calls without a session; comparison: before", effort.flat()), &kept);
    Ok(())
}

impl Subjects {
    async fn set() -> Result<Self> {
        let (process, url) = server("mcp-echo")?;
        let stage = Stage::direct().await?;
        let configure = stage.hub.api()?;
        for (name, path) in [("with_sessions", "session"), ("without", "stateless")] {
            let document = json!({ "type": "mcp_server", "description": "Echo",
                "parameters": { "url": format!("{url}/{path}") } });
            configure.put(&format!("server-tools/{name}"), &document.to_string()).await?.ok()?;
            let tool = format!("tools/{name}__echo");
            eventually("the server is listed", || async {
                Ok(configure.get(&tool).await?.status.is_success().then_some(()))
            })
            .await?;
        }
        let token = stage.api.token();
        let hub = Target::new(&format!("{}/mcp/local/main", stage.hub.url), token)?;
        let direct = [Target::new(&format!("{url}/session"), None)?, Target::new(&format!("{url}/stateless"), None)?];
        Ok(Self { comparison: Comparison::start()?, stage, hub, direct, _server: process })
    }

    const fn direct(&self, manner: Manner) -> &Target {
        let [session, stateless] = &self.direct;
        match manner {
            Manner::Session => session,
            Manner::Stateless => stateless,
        }
    }

    /// The hub's own tool, and one on a foot.
    async fn as_a_server(&self, effort: Effort, manner: Manner, callers: usize) -> Result<Vec<Row>> {
        let text = "x".repeat(PAYLOAD);
        let echo = json!({ "text": text });
        let own = ToolCalls::new(&self.hub, manner, callers, ("current_time", &json!({})), SMALL).await?;
        let foot = ToolCalls::new(&self.hub, manner, callers, ("echo_text", &echo), PAYLOAD).await?;
        let theirs = self.echo(manner, callers, &echo).await?;
        let mut rounds: [Vec<Measured>; 4] = Default::default();
        for round in 0..=effort.rounds {
            let socket = EchoSocket::connect(&self.comparison.socket_url).await?;
            let measured = [
                measure(callers, effort.calls, || own.caller()).await?,
                measure(callers, effort.calls, || foot.caller()).await?,
                measure(callers, effort.calls, || theirs.caller()).await?,
                measure(callers, effort.calls, || socket.caller(&text)).await?,
            ];
            keep(&mut rounds, measured, round);
        }
        let [own, foot, theirs, socket] = rounds.map(|rounds| Measured::median(&rounds));
        let what = |figure: &str| format!("{}, {callers} caller(s), {figure}", manner.name());
        let mut rows = vec![
            Row::time(what("own tool, p50"), own.p50_us, theirs.p50_us, 1.5),
            Row::time(what("own tool, p99"), own.p99_us, theirs.p99_us, 2.0),
            Row::time(
                what("tool of a foot, p50 (+ bare WebSocket echo)"),
                foot.p50_us,
                theirs.p50_us + socket.p50_us,
                1.5,
            ),
            Row::time(
                what("tool of a foot, p99 (+ bare WebSocket echo)"),
                foot.p99_us,
                theirs.p99_us + socket.p99_us,
                2.0,
            ),
        ];
        if callers > 1 {
            let slower = theirs.per_second.min(socket.per_second);
            rows.push(Row::throughput(what("own tool, throughput"), own.per_second, theirs.per_second, 0.6));
            rows.push(Row::throughput(
                what("tool of a foot, throughput (slower of the two)"),
                foot.per_second,
                slower,
                0.6,
            ));
        }
        Ok(rows)
    }

    /// A server behind the hub.
    async fn in_between(&self, effort: Effort, manner: Manner, callers: usize) -> Result<Vec<Row>> {
        let text = "x".repeat(PAYLOAD);
        let echo = json!({ "text": text });
        let name = if manner == Manner::Session { "with_sessions__echo" } else { "without__echo" };
        let through = ToolCalls::new(&self.hub, manner, callers, (name, &echo), PAYLOAD).await?;
        let direct = self.echo(manner, callers, &echo).await?;
        let hop = Post::new(&self.comparison.http, "/echo", &echo.to_string(), Answer::Echo(echo.to_string().len()));
        let mut rounds: [Vec<Measured>; 3] = Default::default();
        for round in 0..=effort.rounds {
            let measured = [
                measure(callers, effort.calls, || through.caller()).await?,
                measure(callers, effort.calls, || direct.caller()).await?,
                measure(callers, effort.calls, || hop.caller()).await?,
            ];
            keep(&mut rounds, measured, round);
        }
        let [through, direct, hop] = rounds.map(|rounds| Measured::median(&rounds));
        let what = |figure: &str| format!("{}, {callers} caller(s), {figure}", manner.name());
        let added = (through.p50_us - direct.p50_us).max(0.0);
        Ok(vec![
            Row::time(what("added p50 (one hop)"), added, hop.p50_us, 1.3),
            Row::shown(what("p50 (the server itself)"), through.p50_us, direct.p50_us, "µs"),
            Row::shown(what("calls a second (the server itself)"), through.per_second, direct.per_second, "/s"),
        ])
    }

    async fn echo(&self, manner: Manner, callers: usize, arguments: &Value) -> Result<ToolCalls> {
        ToolCalls::new(self.direct(manner), manner, callers, ("echo", arguments), PAYLOAD).await
    }

    /// What the hub keeps in memory.
    async fn kept(&self, effort: Effort) -> Result<Vec<Row>> {
        let [_, callers] = CALLERS;
        let echo = json!({ "text": "x".repeat(PAYLOAD) });
        let calls = ToolCalls::new(&self.hub, Manner::Stateless, callers, ("without__echo", &echo), PAYLOAD).await?;
        // What is kept once, for all calls, is there after a tenth.
        measure(callers, effort.flat() / 10, || calls.caller()).await?;
        let before = resident_mib(&self.stage.hub.process)?;
        let measured = measure(callers, effort.flat(), || calls.caller()).await?;
        let after = resident_mib(&self.stage.hub.process)?;
        Ok(vec![
            Row::size("resident after, before".to_owned(), after, before, 1.1),
            Row::size("resident after, allowed".to_owned(), after, RESIDENT_MIB, 1.0),
            Row::shown("calls a second meanwhile".to_owned(), measured.per_second, measured.per_second, "/s"),
        ])
    }
}

/// The first round warms up.
fn keep<const N: usize>(rounds: &mut [Vec<Measured>; N], measured: [Measured; N], round: usize) {
    if round > 0 {
        for (rounds, measured) in rounds.iter_mut().zip(measured) {
            rounds.push(measured);
        }
    }
}

/// Resident memory of a process.
fn resident_mib(process: &Process) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}
