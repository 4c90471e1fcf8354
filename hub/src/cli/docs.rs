//! `footbridge docs`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use comfy_table::Table;
use serde::Serialize;

use super::client::{At, Client, Precondition, TextReply};
use super::error::CliError;
use super::exit::Exit;
use super::input;
use super::out::{Format, remark};
use super::session::{JsonFlag, ScopeArgs, Session};
use super::table::{bytes, cell, optional, table};
use crate::api::documents::{DocumentPage, DocumentSummary, DocumentWritten, VersionList, VersionSummary};
use crate::domain::document::DocumentPath;

#[derive(Debug, Args)]
pub(super) struct DocsArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    json: JsonFlag,
    /// Work in the layer that all projects of the tenant share
    #[arg(long, global = true, conflicts_with = "project")]
    tenant_layer: bool,
    #[command(subcommand)]
    command: DocsCommand,
}

#[derive(Debug, Subcommand)]
enum DocsCommand {
    /// List documents, with the layer that wins
    List {
        /// Only paths that start so
        prefix: Option<String>,
    },
    /// Print a document
    Get {
        /// The document
        path: String,
        /// A kept version of it
        #[arg(long, value_name = "N")]
        version: Option<u64>,
    },
    /// Write a document
    Put {
        /// The document
        path: String,
        /// Its text; `-` or nothing is standard input
        file: Option<PathBuf>,
        #[command(flatten)]
        condition: Condition,
    },
    /// Delete a document; its versions stay readable
    Delete {
        /// The document
        path: String,
        /// Only if it still has this ETag
        #[arg(long, value_name = "ETAG")]
        if_match: Option<String>,
    },
    /// List the kept versions of a document
    Versions {
        /// The document
        path: String,
    },
}

/// What must hold for a write to happen.
#[derive(Debug, Args)]
pub(super) struct Condition {
    /// Only if it still has this ETag
    #[arg(long, value_name = "ETAG", conflicts_with = "create")]
    if_match: Option<String>,
    /// Only if this layer holds none yet
    #[arg(long)]
    create: bool,
}

impl From<Condition> for Precondition {
    fn from(condition: Condition) -> Self {
        match condition {
            Condition { create: true, .. } => Self::Absent,
            Condition { if_match, .. } => if_matched(if_match),
        }
    }
}

/// As [`Condition`], for what cannot be made.
pub(super) fn if_matched(etag: Option<String>) -> Precondition {
    etag.map_or(Precondition::None, Precondition::Match)
}

pub(super) async fn run(args: DocsArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_scope(args.scope);
    session.heed_json(args.json);
    session.heed_tenant_layer(args.tenant_layer);
    let client = session.client()?;
    match args.command {
        DocsCommand::List { prefix } => {
            let page = list(&client, prefix.as_deref()).await?;
            session.out.show_table(&page, "no documents", |page| documents_table(&page.documents))?;
        }
        DocsCommand::Get { path, version } => {
            let path = checked(&path)?;
            let reply = client.get(At::Scope(&segments(&path)))?.query("version", version).text().await?;
            match session.out.format() {
                Format::Json => session.out.json(&Read { path: path.as_str(), reply: &reply })?,
                Format::Text => session.out.exactly(&reply.text)?,
            }
        }
        DocsCommand::Put { path, file, condition } => {
            let path = checked(&path)?;
            let text = input::read(file.as_deref())?;
            let request = client.put(At::Scope(&segments(&path)))?.text_body("text/plain; charset=utf-8", text);
            let written: DocumentWritten = request.only_if(condition.into()).json().await?;
            session.out.show(&written, receipt)?;
        }
        DocsCommand::Delete { path, if_match } => {
            let path = checked(&path)?;
            client.delete(At::Scope(&segments(&path)))?.only_if(if_matched(if_match)).done().await?;
            if session.out.format() == Format::Text {
                remark(&format!("deleted {path}"));
            }
        }
        DocsCommand::Versions { path } => {
            let path = checked(&path)?;
            let request = client.get(At::Scope(&segments(&path)))?.query("versions", Some(true));
            let list: VersionList = request.json().await?;
            session.out.show_table(&list, "no versions", |list| versions_table(&list.versions))?;
        }
    }
    Ok(Exit::Done)
}

/// A document with its path, for programs.
#[derive(Serialize)]
struct Read<'a> {
    path: &'a str,
    #[serde(flatten)]
    reply: &'a TextReply,
}

/// All pages as one.
async fn list(client: &Client, prefix: Option<&str>) -> Result<DocumentPage, CliError> {
    let mut all = DocumentPage { documents: Vec::new(), next_cursor: None };
    loop {
        let request = client.get(At::Scope(&["documents"]))?.query("prefix", prefix);
        let page: DocumentPage = request.query("cursor", all.next_cursor.as_ref()).json().await?;
        all.documents.extend(page.documents);
        // A hub that sends the same cursor again would keep us here for ever.
        if page.next_cursor.is_none() || page.next_cursor == all.next_cursor {
            return Ok(DocumentPage { next_cursor: None, ..all });
        }
        all.next_cursor = page.next_cursor;
    }
}

/// Checked here as well: a path with `..` would address something else before the hub sees it.
fn checked(path: &str) -> Result<DocumentPath, CliError> {
    DocumentPath::parse(path).map_err(|error| CliError::usage(error.to_string()))
}

fn segments(path: &DocumentPath) -> Vec<&str> {
    std::iter::once("documents").chain(path.as_str().split('/')).collect()
}

pub(super) fn receipt(written: &DocumentWritten) -> String {
    format!("wrote {} to {}, version {}, etag {}", written.path, written.layer, written.version, written.etag)
}

fn documents_table(documents: &[DocumentSummary]) -> Table {
    let mut table = table(["path", "layer", "etag", "size", "updated", "error"]);
    for document in documents {
        table.add_row([
            cell(&document.path),
            cell(&document.layer),
            cell(&document.etag),
            bytes(document.bytes),
            optional(document.updated_at.map(|at| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string())),
            optional(document.error.as_ref()),
        ]);
    }
    table
}

fn versions_table(versions: &[VersionSummary]) -> Table {
    let mut table = table(["version", "size", "written", "by"]);
    for version in versions {
        table.add_row([
            version.version.to_string(),
            bytes(version.bytes),
            version.updated_at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
            cell(&version.created_by),
        ]);
    }
    table
}
