//! `footbridge packs`

use clap::Args;
use comfy_table::Table;

use super::client::{At, Client};
use super::error::CliError;
use super::exit::Exit;
use super::out::{Format, remark};
use super::session::{JsonFlag, ScopeArgs, Session};
use super::table::{cell, optional, table};
use crate::api::feet::FootList;
use crate::api::packs::{PackList, PackView};

#[derive(Debug, Args)]
pub(super) struct PacksArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    json: JsonFlag,
    /// One pack, in full
    name: Option<String>,
    /// List the pack again now, and accept its tools as they are
    #[arg(long, requires = "name")]
    refresh: bool,
}

pub(super) async fn run(args: PacksArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_scope(args.scope);
    session.heed_json(args.json);
    let client = session.client()?;
    match args.name {
        None => {
            let list: PackList = client.get(At::Scope(&["packs"]))?.json().await?;
            session.out.show_table(&list, "no packs", |list| packs_table(&list.packs))?;
            if session.out.format() == Format::Text && has_feet(&client).await {
                remark("MCP servers of feet are not among these: `footbridge feet` lists the feet");
            }
        }
        Some(name) => {
            let request = match args.refresh {
                true => client.post(At::Scope(&["packs", &name, "refresh"]))?,
                false => client.get(At::Scope(&["packs", &name]))?,
            };
            let pack: PackView = request.json().await?;
            session.out.show(&pack, detail)?;
        }
    }
    Ok(Exit::Done)
}

/// Whether there are feet to be seen; `false` also where nobody says.
async fn has_feet(client: &Client) -> bool {
    let Ok(request) = client.get(At::Scope(&["feet"])) else { return false };
    request.json().await.is_ok_and(|list: FootList| !list.feet.is_empty())
}

fn packs_table(packs: &[PackView]) -> Table {
    let mut table = table(["pack", "state", "tools", "resources", "prompts", "where", "protocol", "what is wrong"]);
    for pack in packs {
        let left_out = if pack.left_out > 0 { format!(" ({} left out)", pack.left_out) } else { String::new() };
        table.add_row([
            cell(&pack.name),
            cell(&pack.state),
            cell(format!("{}{left_out}", pack.tools)),
            cell((pack.resources + pack.resource_templates).to_string()),
            cell(pack.prompts.to_string()),
            optional(pack.place.as_ref()),
            optional(pack.protocol.as_ref()),
            optional(wrong(pack).as_ref()),
        ]);
    }
    table
}

fn wrong(pack: &PackView) -> Option<String> {
    let changed = || match pack.changed.len() {
        0 => None,
        many => Some(format!("{many} tools changed")),
    };
    pack.last_error.as_ref().map(|error| error.message.clone()).or_else(|| pack.note.clone()).or_else(changed)
}

fn detail(pack: &PackView) -> String {
    let mut lines = vec![format!("{}: {} ({} from {})", pack.name, pack.state, pack.type_id, pack.layer)];
    let mut line = |name: &str, value: Option<String>| {
        lines.extend(value.filter(|value| !value.is_empty()).map(|value| format!("  {name}: {value}")));
    };
    let some = |number: usize| (number > 0).then(|| number.to_string());
    line("where", pack.place.clone());
    line("server", pack.server.clone());
    line("protocol", pack.protocol.clone());
    line("tools", Some(pack.tools.to_string()));
    line("left out", some(pack.left_out));
    line("odd", Some(pack.odd.join("; ")));
    line("changed", Some(pack.changed.join(", ")));
    line("resources", some(pack.resources));
    line("resource templates", some(pack.resource_templates));
    line("prompts", some(pack.prompts));
    line("note", pack.note.clone());
    line(
        "last error",
        pack.last_error.as_ref().map(|error| format!("{} ({}, {})", error.message, error.code, error.at)),
    );
    line("listed", pack.listed_at.map(|at| at.to_string()));
    line("next try", pack.next_try_at.map(|at| at.to_string()));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_is_told_with_what_is_wrong() {
        let pack: PackView = serde_json::from_value(serde_json::json!({
            "name": "lab", "type": "mcp_server", "layer": "project", "state": "stale", "place": "npx", "tools": 3,
            "leftOut": 1, "odd": ["`x` has no input schema"], "changed": ["echo"], "resources": 0, "resourceTemplates": 2,
            "prompts": 0, "lastError": {"code": "server_unavailable", "message": "it ended", "at": "2026-01-01T00:00:00Z"},
        }))
        .unwrap();
        assert_eq!(
            detail(&pack),
            "lab: stale (mcp_server from project)\n  where: npx\n  tools: 3\n  left out: 1\n  odd: `x` has no input schema\n  \
             changed: echo\n  resource templates: 2\n  last error: it ended (server_unavailable, 2026-01-01T00:00:00Z)"
        );
        assert_eq!(wrong(&pack).as_deref(), Some("it ended"));
    }
}
