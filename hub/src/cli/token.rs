//! `footbridge token`

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use comfy_table::Table;
use jiff::{Span, SpanRelativeTo};

use super::client::{At, Client};
use super::error::CliError;
use super::exit::Exit;
use super::out::{Format, remark};
use super::session::{JsonFlag, Session};
use super::table::{cell, optional, table};
use crate::api::tokens::{CreateToken, TokenCreated, TokenList, TokenView};
use crate::domain::principal::Role;

mod stopped;

const LONG_CREATE: &str = "\
Make a token.

The token goes to standard output, this once; what it is, to standard error. It reaches the tenant of the connection \
unless --tenant or --whole-hub says otherwise.

With --data it is made without a hub, in the data folder of one that does not run: so the first token is made. It then \
is an admin of the whole hub, unless --role and --tenant say otherwise.";

#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    #[command(flatten)]
    json: JsonFlag,
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    /// Make a token; this prints it, once
    #[command(long_about = LONG_CREATE)]
    Create(Box<CreateArgs>),
    /// List the tokens within reach, without their secrets
    List,
    /// Take a token out of use
    Revoke {
        /// The token's id
        id: String,
    },
}

#[derive(Debug, Args)]
struct CreateArgs {
    /// Who it speaks for [default: you, with the hub of this folder and with --data]
    #[arg(long, value_name = "SUBJECT")]
    subject: Option<String>,
    /// What it allows; stands once for each
    #[arg(long = "role", value_name = "ROLE", value_delimiter = ',', required_unless_present = "data", value_parser = roles())]
    roles: Vec<Role>,
    /// The tenant it reaches
    #[arg(long, value_name = "TENANT")]
    tenant: Option<String>,
    /// A project it reaches; stands once for each [default: all of the tenant]
    #[arg(long = "project", value_name = "PROJECT", value_delimiter = ',')]
    projects: Vec<String>,
    /// Let it reach every tenant
    #[arg(long, conflicts_with_all = ["tenant", "projects"])]
    whole_hub: bool,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    /// Another subject it may create processes for; `*` is everybody
    #[arg(long, value_name = "SUBJECT", value_delimiter = ',')]
    act_as: Vec<String>,
    /// When it ends: 30d, 12h, 90min [default: never]
    #[arg(long, value_name = "SPAN", value_parser = seconds)]
    expires: Option<u64>,
    /// The data folder of a stopped hub
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

pub(super) async fn run(args: TokenArgs, session: &mut Session) -> Result<Exit, CliError> {
    session.heed_json(args.json);
    match args.command {
        TokenCommand::Create(args) => {
            let created = match args.data.clone() {
                Some(data) => stopped::create(&data, offline_request(*args, session)).await?,
                None => {
                    let client = session.client()?;
                    let request = online_request(*args, &client)?;
                    client.post(At::Hub(&["tokens"]))?.json_body(&request)?.json().await?
                }
            };
            tell(&created, session)?;
        }
        TokenCommand::List => {
            let list: TokenList = session.client()?.get(At::Hub(&["tokens"]))?.json().await?;
            session.out.show_table(&list, "no tokens", |list| tokens_table(&list.tokens))?;
        }
        TokenCommand::Revoke { id } => {
            session.client()?.delete(At::Hub(&["tokens", &id]))?.done().await?;
            if session.out.format() == Format::Text {
                remark(&format!("revoked {id}"));
            }
        }
    }
    Ok(Exit::Done)
}

fn online_request(args: CreateArgs, client: &Client) -> Result<CreateToken, CliError> {
    let own = || client.subject_of_folder().map(str::to_owned);
    let subject = args.subject.clone().or_else(own);
    let subject = subject.ok_or_else(|| CliError::usage("who the token speaks for is not said: use --subject"))?;
    let tenant = match (&args.tenant, args.whole_hub) {
        (Some(tenant), _) => Some(tenant.clone()),
        (None, true) => None,
        (None, false) => Some(client.tenant()?.to_owned()),
    };
    Ok(request(args, subject, tenant))
}

/// Whoever has the data folder has everything; there is no connection that could say more.
fn offline_request(mut args: CreateArgs, session: &Session) -> CreateToken {
    if args.roles.is_empty() {
        args.roles.push(Role::Admin);
    }
    let subject = args.subject.clone().unwrap_or_else(|| session.user());
    let tenant = args.tenant.clone();
    request(args, subject, tenant)
}

fn request(args: CreateArgs, subject: String, tenant: Option<String>) -> CreateToken {
    CreateToken {
        subject,
        roles: args.roles,
        tenant,
        projects: (!args.projects.is_empty()).then_some(args.projects),
        name: args.name,
        act_as: args.act_as,
        expires_in_seconds: args.expires,
    }
}

/// The token alone goes to standard output; what it is, to standard error.
fn tell(created: &TokenCreated, session: &mut Session) -> Result<(), CliError> {
    if session.out.format() == Format::Json {
        return Ok(session.out.json(created)?);
    }
    session.out.text(&created.token)?;
    let view = &created.view;
    let ends = view.expires_at.map_or_else(|| "does not expire".to_owned(), |at| format!("ends {at:.0}"));
    remark(&format!(
        "token {} for {}: {} in {}; {ends}. It is shown this once.",
        view.id,
        view.subject,
        roles_of(view),
        reach_of(view)
    ));
    Ok(())
}

fn tokens_table(tokens: &[TokenView]) -> Table {
    let mut table = table(["token", "for", "roles", "reach", "name", "made", "ends"]);
    for token in tokens {
        table.add_row([
            cell(&token.id),
            cell(&token.subject),
            cell(roles_of(token)),
            cell(reach_of(token)),
            optional(token.name.as_ref()),
            token.created_at.strftime("%Y-%m-%d").to_string(),
            optional(token.expires_at.map(|at| at.strftime("%Y-%m-%d %H:%MZ").to_string())),
        ]);
    }
    table
}

fn roles_of(token: &TokenView) -> String {
    token.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}

fn reach_of(token: &TokenView) -> String {
    match (&token.tenant, &token.projects) {
        (None, _) => "the whole hub".to_owned(),
        (Some(tenant), None) => tenant.clone(),
        (Some(tenant), Some(projects)) => {
            projects.iter().map(|project| format!("{tenant}/{project}")).collect::<Vec<_>>().join(", ")
        }
    }
}

fn roles() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str)).try_map(|text| text.parse::<Role>())
}

/// A span of time in seconds; a day has 24 hours, a week seven days, and months differ too much.
fn seconds(text: &str) -> Result<u64, String> {
    let wrong = || "use a span of time such as 30d, 12h or 90min".to_owned();
    let span: Span = text.parse().map_err(|_| wrong())?;
    let seconds = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|_| wrong())?.as_secs();
    u64::try_from(seconds).ok().filter(|seconds| *seconds > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_read_and_months_are_refused() {
        assert_eq!(seconds("30d"), Ok(30 * 86_400));
        assert_eq!(seconds("1h 30min"), Ok(5_400));
        assert_eq!(seconds("2w"), Ok(14 * 86_400));
        for bad in ["", "30", "1mo", "0s", "-1d", "100ms", "soon"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
