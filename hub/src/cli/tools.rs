//! `footbridge tools`

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::client::{At, Client};
use super::docs::{Condition, if_matched, receipt};
use super::error::CliError;
use super::exit::Exit;
use super::input;
use super::out::{Format, remark};
use super::session::{JsonFlag, ScopeArgs, Session};
use crate::api::documents::DocumentWritten;
use crate::api::tools::{
    ServerToolList, ServerToolSummary, ServerToolView, ToolDetail, ToolPage, ToolState, ToolTypeList, Validation, Why,
};

mod show;

/// The media type of a tool's document.
const YAML: &str = "application/yaml";

/// The type of documents that attach an MCP server.
const MCP_SERVER: &str = "mcp_server";

#[derive(Debug, Args)]
pub(super) struct ToolsArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    json: JsonFlag,
    /// Work in the layer that all projects of the tenant share
    #[arg(long, global = true, conflicts_with = "project")]
    tenant_layer: bool,
    #[command(subcommand)]
    command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
enum ToolsCommand {
    /// List the tools that can be called, and broken ones
    List {
        /// Only names that start so
        #[arg(long)]
        prefix: Option<String>,
        /// Only tools with this label
        #[arg(long)]
        label: Option<String>,
        /// Only tools of this kind: configured, built-in or client
        #[arg(long, value_parser = ["configured", "built-in", "client"])]
        source: Option<String>,
    },
    /// List the documents that configure tools, disabled and broken ones too
    Documents,
    /// Print a tool's document, ready for `put`; for a tool without one, what `show` prints
    Get {
        /// The tool
        name: String,
    },
    /// Describe a tool as callers see it, with its schema
    Show {
        /// The tool
        name: String,
    },
    /// Write a tool's document, in force when this returns
    Put {
        /// The tool
        name: String,
        /// Its YAML; `-` or nothing is standard input
        file: Option<PathBuf>,
        #[command(flatten)]
        condition: Condition,
    },
    /// Delete a tool's document from this layer; what it hid comes back
    Delete {
        /// The tool
        name: String,
        /// Only if it still has this ETag
        #[arg(long, value_name = "ETAG")]
        if_match: Option<String>,
    },
    /// Tell which layer decides what a name means, and what it hides
    Why {
        /// The name
        name: String,
    },
    /// Check a tool's document without writing it
    Validate {
        /// The tool
        name: String,
        /// Its YAML; `-` or nothing is standard input
        file: Option<PathBuf>,
    },
    /// List the types that a tool's document may have, with the schemas of their parameters
    Types,
}

pub(super) async fn run(args: ToolsArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_scope(args.scope);
    session.heed_json(args.json);
    session.heed_tenant_layer(args.tenant_layer);
    let client = session.client()?;
    let out = &mut session.out;
    match args.command {
        ToolsCommand::List { prefix, label, source } => {
            let filter = Filter { prefix, label, source };
            let page = list(&client, &filter).await?;
            out.show_table(&page, "no tools", |page| show::tools(&page.tools))?;
        }
        ToolsCommand::Documents => {
            let list: ServerToolList = client.get(At::Scope(&["server-tools"]))?.json().await?;
            out.show_table(&list, "no documents", |list| show::documents(&list.server_tools))?;
            for problem in &list.problems {
                remark(&format!("{}: {}", problem.document, problem.message));
            }
        }
        ToolsCommand::Get { name } => match document(&client, &name).await? {
            Some(view) if out.format() == Format::Json => out.json(&view)?,
            Some(view) => {
                remark(&format!("# {} from {}, etag {}", name, view.summary.layer, view.summary.etag));
                out.exactly(&view.text)?;
            }
            None => out.show(&detail(&client, &name).await?, show::detail)?,
        },
        ToolsCommand::Show { name } => out.show(&detail(&client, &name).await?, show::detail)?,
        ToolsCommand::Put { name, file, condition } => {
            let text = input::read(file.as_deref())?;
            let request = client.put(At::Scope(&["server-tools", &name]))?.text_body(YAML, text);
            let written: DocumentWritten = request.only_if(condition.into()).json().await?;
            out.show(&written, receipt)?;
            if out.format() == Format::Text {
                for line in after_put(&client, &name).await {
                    remark(&line);
                }
            }
        }
        ToolsCommand::Delete { name, if_match } => {
            client.delete(At::Scope(&["server-tools", &name]))?.only_if(if_matched(if_match)).done().await?;
            if out.format() == Format::Text {
                remark(&format!("deleted {name}"));
            }
        }
        ToolsCommand::Why { name } => {
            let why: Why = client.get(At::Scope(&["tools", &name, "why"]))?.json().await?;
            out.show(&why, show::why)?;
        }
        ToolsCommand::Validate { name, file } => {
            let text = input::read(file.as_deref())?;
            let request = client.put(At::Scope(&["server-tools", &name]))?.text_body(YAML, text);
            let validation: Validation = request.query("validate", Some(true)).json().await?;
            out.show(&validation, |_| format!("{name} is valid"))?;
        }
        ToolsCommand::Types => {
            let list: ToolTypeList = client.get(At::Hub(&["tool-types"]))?.json().await?;
            out.show_table(&list, "no tool types", |list| show::types(&list.tool_types))?;
        }
    }
    Ok(Exit::Done)
}

/// What else to know of a document that was just written. Where nobody says, that is all the same a success.
async fn after_put(client: &Client, name: &str) -> Vec<String> {
    let Ok(request) = client.get(At::Scope(&["server-tools"])) else { return Vec::new() };
    match request.json().await {
        Ok(list) => worth_knowing(&list, name),
        Err(_) => Vec::new(),
    }
}

fn worth_knowing(list: &ServerToolList, name: &str) -> Vec<String> {
    let path = format!("server-tools/{name}.yaml");
    let problems = list.problems.iter().filter(|problem| problem.document == path);
    let mut lines: Vec<String> = problems
        .map(|problem| match &problem.hint {
            Some(hint) => format!("{}: {}; {hint}", problem.document, problem.message),
            None => format!("{}: {}", problem.document, problem.message),
        })
        .collect();
    let is_server = |tool: &ServerToolSummary| {
        tool.name == name && tool.state == ToolState::Active && tool.type_id.as_deref() == Some(MCP_SERVER)
    };
    if list.server_tools.iter().any(is_server) {
        lines.push(format!("it is connected to in the background: `footbridge packs {name}` shows how it is"));
    }
    lines
}

/// Which tools to list.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) prefix: Option<String>,
    pub(super) label: Option<String>,
    pub(super) source: Option<String>,
}

/// All pages as one.
pub(super) async fn list(client: &Client, filter: &Filter) -> Result<ToolPage, CliError> {
    let mut all = ToolPage { tools: Vec::new(), next_cursor: None };
    loop {
        let request = client.get(At::Scope(&["tools"]))?;
        let request = request.query("prefix", filter.prefix.as_ref()).query("label", filter.label.as_ref());
        let request = request.query("source", filter.source.as_ref()).query("cursor", all.next_cursor.as_ref());
        let page: ToolPage = request.json().await?;
        all.tools.extend(page.tools);
        // A hub that sends the same cursor again would keep us here for ever.
        if page.next_cursor.is_none() || page.next_cursor == all.next_cursor {
            return Ok(ToolPage { next_cursor: None, ..all });
        }
        all.next_cursor = page.next_cursor;
    }
}

/// A tool as callers see it.
pub(super) async fn detail(client: &Client, name: &str) -> Result<ToolDetail, CliError> {
    client.get(At::Scope(&["tools", name]))?.json().await
}

async fn document(client: &Client, name: &str) -> Result<Option<ServerToolView>, CliError> {
    match client.get(At::Scope(&["server-tools", name]))?.json().await {
        // A name that no document may have (`pack__tool`) is one that has none.
        Err(error) if matches!(error.exit(), Exit::NotFound | Exit::Invalid) => Ok(None),
        view => view.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_put_what_is_worth_knowing_of_that_document_is_told() {
        let entry = |name: &str, type_id: &str| serde_json::json!({"name": name, "layer": "project", "etag": "e", "state": "active", "type": type_id});
        let list = serde_json::json!({
            "serverTools": [entry("clock", "mcp_server"), entry("now", "mcp")],
            "problems": [{"document": "server-tools/now.yaml", "message": "no such server", "hint": "did you mean `clock`?"}],
        });
        let list: ServerToolList = serde_json::from_value(list).unwrap();
        assert_eq!(worth_knowing(&list, "now"), ["server-tools/now.yaml: no such server; did you mean `clock`?"]);
        let told = "it is connected to in the background: `footbridge packs clock` shows how it is";
        assert_eq!(worth_knowing(&list, "clock"), [told]);
        assert!(worth_knowing(&list, "other").is_empty());
    }
}
