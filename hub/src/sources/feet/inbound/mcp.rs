//! What local MCP servers say: their questions, notifications and answers.

use footbridge_mcp::changes;
use footbridge_shared::limits::MAX_UPCALL_ID_BYTES;
use footbridge_shared::message::{Audience, Notify, Response, Servers, Upcall};

use super::{Inbound, said};
use crate::domain::mcp::{ListKind, McpAudience, McpNote};
use crate::sources::feet::lists::refresh;
use crate::sources::feet::questions::Asked;
use crate::sources::feet::requests::answer_of;

/// Longest id of an MCP session that a notification may name, in bytes.
const MAX_SESSION_BYTES: usize = 256;
/// What all methods of notifications begin with.
const NOTIFICATION: &str = "notifications/";
/// Longest name of a method, in bytes.
const MAX_METHOD_BYTES: usize = 128;
/// Notifications that speak of requests by their ids, or begin a session. Ids mean nothing beyond a connection: to pass these
/// on would let a server end what another one asked.
const OF_ONE_CONNECTION: [&str; 3] = ["notifications/cancelled", "notifications/progress", "notifications/initialized"];

impl Inbound<'_> {
    /// A server asks the client of a call. The client is waited for in a task of its own.
    pub(super) fn asked(&self, upcall: Upcall) -> Result<(), String> {
        if upcall.id.len() > MAX_UPCALL_ID_BYTES {
            return Err(format!("an `upcall` whose id has more than {MAX_UPCALL_ID_BYTES} bytes"));
        }
        match self.seat.foot.question(self.seat.epoch, upcall) {
            Asked::Answered(answer) => self.outbox.answer(answer),
            Asked::Begun(asking) => self.core.lifecycle.spawn("feet-question", asking.run()),
            Asked::Waits => {}
        }
        Ok(())
    }

    /// The end of a request.
    pub(super) fn responded(&self, response: Response) {
        let call = response.call.clone();
        self.outbox.settled(&call);
        if !self.seat.foot.responded(self.seat.epoch, &call, answer_of(response)) {
            self.core.totals.orphan();
        }
    }

    /// The foot names its servers anew.
    pub(super) fn serves(&self, Servers { servers }: Servers) {
        let foot = &self.seat.foot;
        let checked = self.core.intake.servers(&foot.name, servers);
        if foot.serves(self.seat.epoch, checked) {
            self.seat.roster.offers_changed();
            self.refresh_servers();
        }
    }

    /// Looks at all lists of all servers of the foot.
    pub(in crate::sources::feet) fn refresh_servers(&self) {
        let foot = &self.seat.foot;
        for server in foot.servers(self.seat.epoch).values() {
            refresh(self.core, foot, server, &ListKind::ALL);
        }
    }

    /// A server tells something: the client of a call, those it works for, or the hub.
    pub(super) fn notified(&self, Notify { call, audience, server, method, params }: Notify) {
        let (foot, epoch) = (&self.seat.foot, self.seat.epoch);
        let servers = foot.servers(epoch);
        let Some(server) = servers.get(server.as_str()) else {
            return tracing::debug!(foot = %foot.name, server = said(&server), "a notification of a server that is not here");
        };
        let is_one =
            method.starts_with(NOTIFICATION) && method.len() <= MAX_METHOD_BYTES && params.get().starts_with('{');
        if !is_one || OF_ONE_CONNECTION.contains(&method.as_str()) {
            return tracing::debug!(foot = %foot.name, server = %server.name, method = said(&method), "a notification was dropped");
        }
        match method.as_str() {
            changes::RESOURCES => {
                refresh(self.core, foot, server, &[ListKind::Resources, ListKind::ResourceTemplates]);
            }
            changes::PROMPTS => refresh(self.core, foot, server, &[ListKind::Prompts]),
            // The foot says by itself what its tools are.
            _ => {}
        }
        match (call, audience) {
            (Some(call), _) if !changes::is_of_a_list(&method) => foot.tell_client(epoch, &call, &method, params),
            (_, Some(Audience { subject, session })) => {
                if !foot.admits(&subject) || session.as_ref().is_some_and(|id| id.len() > MAX_SESSION_BYTES) {
                    return tracing::debug!(foot = %foot.name, %subject, "a notification for somebody the foot does not work for");
                }
                let audience = match session {
                    Some(session) => McpAudience::Session(subject, session),
                    None => McpAudience::Subject(subject),
                };
                server.notes.tell(McpNote::Told { audience, method, params });
            }
            // Of a connection that everybody shares; it is told to those alone who follow the resource.
            (_, None) if method == changes::RESOURCE => {
                server.notes.tell(McpNote::Told { audience: McpAudience::Everybody, method, params });
            }
            (_, None) => {
                tracing::debug!(foot = %foot.name, server = %server.name, method, params = said(params.get()), "a server of a foot says");
            }
        }
    }
}
