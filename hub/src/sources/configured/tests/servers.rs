//! Documents that attach MCP servers.

use footbridge_shared::ErrorCode;

use super::*;

const SECRET: &str = "S3CR3T-demo-0001";

/// What is wrong with the parameters of an `mcp_server`.
fn problems(parameters: &str) -> Vec<String> {
    let text = format!("type: mcp_server\ndescription: d\nparameters: {parameters}\n");
    let checker = Checker::new(Registry::new().unwrap());
    let name = EntryName::parse("lab").unwrap();
    match checker.read(&name, Layer::Project, &text) {
        Ok(_) => Vec::new(),
        Err(errors) => errors
            .into_iter()
            .map(|error| format!("{}:{} {}", error.column, error.key.unwrap_or_default(), error.message))
            .collect(),
    }
}

#[test]
fn mistakes_are_named_at_their_place_and_credentials_are_not_quoted() {
    let cases = [
        ("{}", "13:parameters where the server is, is missing: give `command` or `url`"),
        ("{command: a, url: 'http://x'}", "31:parameters.url a server is a program or is at an address"),
        ("{command: a, transport: http}", "37:parameters.transport it must be `stdio`, since there is `command`"),
        ("{url: 'http://x', args: [a]}", "31:parameters.args only a server with `command` has this key"),
        ("{command: './a b'}", "23:parameters.command it must be the name of a program, or its absolute path"),
        ("{command: a, args: [1]}", "33:parameters.args[0] it must be a text"),
        ("{command: a, cwd: here}", "31:parameters.cwd it must be an absolute path"),
        ("{command: a, env: {K: 1}}", "35:parameters.env.K it must be a text"),
        ("{url: 'ftp://x'}", "19:parameters.url this is no address"),
        ("{url: 'http://x', headers: {'a b': c}}", "41:parameters.headers.a b this is no name of a header"),
        ("{url: 'http://x', headers: {Host: c}}", "41:parameters.headers.Host the protocol itself sets this header"),
        (
            "{url: 'http://x', headers: {K: S3CR3T-demo-0001, k: b}}",
            "62:parameters.headers.k the header `k` stands twice",
        ),
        ("{url: 'http://x', headers: {K: \"S3CR3T-demo-0001\\n\"}}", "44:parameters.headers.K it must be a text"),
        (
            "{url: 'http://x', auth: {type: beer, token: S3CR3T-demo-0001}}",
            "44:parameters.auth.type there is no `auth`",
        ),
        ("{url: 'http://x', auth: {type: bearer, tokn: S3CR3T-demo-0001}}", "37:parameters.auth.token the key `token`"),
        ("{url: 'http://x', auth: {type: bearer, token: 7}}", "59:parameters.auth.token it must be a text"),
        (
            "{url: 'http://u:S3CR3T-demo-0001@x', auth: {type: bearer, token: t}}",
            "19:parameters.url credentials stand twice",
        ),
        (
            "{url: 'http://x', headers: {authorization: a}, auth: {type: bearer, token: S3CR3T-demo-0001}}",
            "40:parameters.headers the header `authorization` stands twice",
        ),
        ("{url: 'http://x', tls: {caPem: S3CR3T-demo-0001}}", "44:parameters.tls.caPem these are no certificates"),
        ("{command: a, include: ['[']}", "36:parameters.include[0] this is no glob"),
        ("{command: a, session: mine}", "35:parameters.session it must be one of"),
        ("{command: a, timeoutSeconds: 0}", "42:parameters.timeoutSeconds it must be at least 1"),
    ];
    for (parameters, expected) in cases {
        let found = problems(parameters);
        assert!(found.iter().any(|problem| problem.starts_with(expected)), "{parameters}: {found:?}");
        assert!(!found.iter().any(|problem| problem.contains(SECRET)), "{parameters}: {found:?}");
    }
    for good in [
        "{command: uvx, args: [mcp-server-time], env: {K: v}, cwd: /tmp, session: subject, concurrency: 2}",
        "{url: 'https://u:p@x.example/mcp?k=v', transport: sse, headers: {X-A: b}, tls: {skipVerification: true}}",
        "{url: 'http://x', auth: {type: apiKey, in: cookie, name: k, value: v}}",
        "{url: 'http://x', auth: {type: oauth2ClientCredentials, tokenUrl: 'https://y/t', clientId: c, clientSecret: s, scopes: [a]}}",
        "{url: 'http://x', auth: none, include: ['a*'], exclude: [], defaultArgs: {a: 1}, forceArgs: {b: [2]}}",
    ] {
        assert_eq!(problems(good), [""; 0], "{good}");
    }
}

/// Asks until it is so; whatever it waits for runs in this process.
async fn pack(world: &World, scope: &Scope, name: &str, is_so: impl Fn(&PackView) -> bool) -> PackView {
    loop {
        let packs = world.source.packs(scope, &subject("ann"), true).await.unwrap();
        if let Some(pack) = packs.into_iter().find(|pack| pack.name.as_str() == name && is_so(pack)) {
            return pack;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_costs_nobody_else_anything() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let away = format!("type: mcp_server\ndescription: d\nparameters: {{url: 'http://u:{SECRET}@{closed}/{SECRET}'}}");
    world.put(&own, "away", &away).await.unwrap();
    world.put(&own, "denied", "type: mcp_server\ndescription: d\nparameters: {command: sh}").await.unwrap();
    world.put(&own, "one", "type: mcp\ndescription: d\nparameters: {server: away, toolName: x}").await.unwrap();
    world.put(&own, "other", "type: mcp\ndescription: d\nparameters: {server: nowhere, toolName: x}").await.unwrap();
    let away = pack(&world, &own, "away", |pack| pack.status.error.is_some()).await;
    assert_eq!((away.status.state, away.tools), (PackState::Failed, 0));
    assert!(away.status.next_try_at.is_some());
    assert!(!format!("{away:?}").contains(SECRET), "{away:?}");
    let denied = pack(&world, &own, "denied", |pack| pack.status.error.is_some()).await;
    let error = denied.status.error.unwrap();
    assert_eq!((error.code, denied.status.next_try_at), (ErrorCode::CommandNotAllowed, None));
    let reasons = [
        ("one", ErrorCode::ServerUnavailable, "is not available"),
        ("other", ErrorCode::ToolBroken, "there is no MCP server `nowhere` here"),
    ];
    for (tool, code, why) in reasons {
        let failure = world.call(&own, tool, json!({})).await.unwrap_err();
        assert_eq!(failure.code, code);
        assert!(failure.message.contains(why) && !failure.message.contains(SECRET), "{}", failure.message);
    }
    assert_eq!(world.listing(&own).await.tools.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["one", "other"]);
}

#[tokio::test]
async fn a_tool_of_a_pack_that_was_never_listed_is_not_unknown_to_those_who_may_use_it() {
    let world = World::new(&[]).await;
    let scope = scope("acme", "shop");
    let parameters = "parameters: {command: sh}";
    world.put(&scope, "lab", &format!("type: mcp_server\ndescription: d\n{parameters}\n")).await.unwrap();
    let closed = format!("type: mcp_server\ndescription: d\nrequiresRoles: [admin]\n{parameters}\n");
    world.put(&scope, "closed", &closed).await.unwrap();
    world.source.refresh_pack(&scope, &subject("ann"), "lab").await.unwrap();
    let ann = Caller::direct(subject("ann"));
    let failure = world.source.absent(&scope, &ann, "lab__echo").await.unwrap();
    assert_eq!((failure.code, failure.outcome), (ErrorCode::ServerUnavailable, footbridge_shared::Outcome::NotRun));
    assert!(failure.message.starts_with("the pack `lab` is not available: the operator of the hub"), "{failure}");
    assert_eq!(failure.hint.as_deref(), Some("`footbridge packs lab` shows how it is"));
    assert_eq!(failure.retry_after_ms, None, "that is no matter of time");
    for name in ["lab", "echo", "other__echo", "closed__echo"] {
        assert!(world.source.absent(&scope, &ann, name).await.is_none(), "{name}");
    }
}

#[tokio::test]
async fn a_document_that_names_a_server_which_is_not_there_is_told_of() {
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    let server = "type: mcp_server\ndescription: d\nparameters: {command: sh}";
    world.put(&own, "calendar", server).await.unwrap();
    world.put(&own, "closed", &format!("{server}\nrequiresRoles: [admin]")).await.unwrap();
    for (name, server) in [("right", "calendar"), ("wrong", "calender"), ("hidden", "close")] {
        let document = format!("type: mcp\ndescription: d\nparameters: {{server: {server}, toolName: x}}");
        world.put(&own, name, &document).await.unwrap();
    }
    let failure = world.call(&own, "wrong", json!({})).await.unwrap_err();
    assert_eq!((failure.code, failure.hint.as_deref()), (ErrorCode::ToolBroken, Some("did you mean `calendar`?")));
    let failure = world.call(&own, "hidden", json!({})).await.unwrap_err();
    assert_eq!(failure.hint.as_deref(), Some("`footbridge packs` lists the servers that there are"));
    let problems = world.source.problems(&own).await.unwrap();
    let told: Vec<_> = problems.iter().map(|problem| (&*problem.document, problem.hint.as_deref())).collect();
    let hidden = ("server-tools/hidden.yaml", Some("did you mean `closed`?"));
    assert_eq!(told, [hidden, ("server-tools/wrong.yaml", Some("did you mean `calendar`?"))]);
}

#[tokio::test]
async fn what_a_server_that_is_away_is_asked_fails_with_all_that_is_known() {
    use crate::domain::mcp::McpServers as _;
    let world = World::new(&[]).await;
    let own = scope("acme", "main");
    world.put(&own, "lab", "type: mcp_server\ndescription: d\nparameters: {command: sh}").await.unwrap();
    let servers = world.source.servers(&own, &subject("ann")).await.unwrap();
    let params = to_raw_value(&json!({"uri": "x:y"})).unwrap();
    let error = servers[0].request(&context(&own), "resources/read", params).await.unwrap_err();
    let data: serde_json::Value = serde_json::from_str(error.data.unwrap().get()).unwrap();
    assert_eq!((&data["code"], &data["outcome"]), (&json!("command_not_allowed"), &json!("not_run")));
    assert!(data["hint"].is_string(), "{data}");
}
