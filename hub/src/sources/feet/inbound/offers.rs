//! What a foot says that it offers.

use footbridge_shared::ErrorCode;
use footbridge_shared::message::{FootToHub, RejectedTool, Tools, ToolsAck, WireError};

use super::Inbound;
use crate::sources::feet::intake::Checked;

/// Lines that the log gets about one connection's tools; what is wrong beyond that only the foot is told.
const MAX_LOGGED_TOOLS: u32 = 20;

/// A `tools` message, and its entries that could not even be read.
#[derive(Debug)]
pub(in crate::sources::feet) struct Offered {
    tools: Tools,
    rejected: Vec<RejectedTool>,
}

impl Offered {
    /// All entries could be read.
    pub(super) fn new(tools: Tools) -> Box<Self> {
        Box::new(Self { tools, rejected: Vec::new() })
    }
}

/// Reads a message. What a foot offers can be read entry by entry, if not as a whole.
pub(super) fn read(text: &str) -> Result<Result<FootToHub, Box<Offered>>, String> {
    FootToHub::decode(text).map(Ok).or_else(|error| match Tools::decode_each(text) {
        Some((tools, rejected)) => Ok(Err(Box::new(Offered { tools, rejected }))),
        None => Err(error.to_string()),
    })
}

impl Inbound<'_> {
    /// Takes what a foot offers. To compile foreign schemas may take a while: that happens off the tasks of connections, and
    /// only this foot waits for it.
    pub(in crate::sources::feet) async fn offered(&mut self, Offered { tools, rejected }: Offered) {
        let (foot, epoch, revision) = (&self.seat.foot, self.seat.epoch, tools.revision);
        if !foot.awaits(epoch, revision) {
            tracing::debug!(foot = %foot.name, revision, "a change of tools is not news");
            self.outbox.answer(ToolsAck { revision, rejected: Vec::new() });
            return;
        }
        let checking = {
            let core = self.core.clone();
            tokio::task::spawn_blocking(move || core.intake.check(tools, rejected))
        };
        let checked = match checking.await {
            Ok(checked) => checked,
            Err(error) => {
                tracing::error!(foot = %foot.name, %error, "the tools of a foot could not be checked");
                let message = "the tools could not be checked";
                return self.outbox.control(WireError { code: ErrorCode::Internal, message: message.to_owned() });
            }
        };
        self.note(&checked);
        let applied = self.seat.foot.apply(epoch, revision, checked);
        if applied.changed {
            self.seat.roster.offers_changed();
        }
        self.outbox.answer(ToolsAck { revision, rejected: Checked::answer(applied.rejected) });
    }

    /// Notes what was wrong with a `tools` message: a line for each of the first tools whose texts were cleaned, and one
    /// for all that were rejected.
    fn note(&mut self, checked: &Checked) {
        let foot = &self.seat.foot.name;
        for (tool, removed) in &checked.cleaned {
            if !logs_another(&mut self.logged_tools) {
                break;
            }
            tracing::warn!(%foot, %tool, removed, "hidden characters were removed from the texts of a tool");
        }
        if let Some(first) = checked.rejected.first()
            && logs_another(&mut self.logged_tools)
        {
            let RejectedTool { tool, code, message } = first;
            tracing::info!(%foot, tool, %code, reason = message, rejected = checked.rejected.len(), "tools were rejected");
        }
    }
}

/// Whether the log gets another line about a connection's tools.
fn logs_another(logged: &mut u32) -> bool {
    *logged = logged.saturating_add(1);
    *logged <= MAX_LOGGED_TOOLS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_fills_the_log_with_its_tools_only_so_far() {
        let mut logged = 0;
        assert_eq!((0..1_000).filter(|_| logs_another(&mut logged)).count(), MAX_LOGGED_TOOLS as usize);
    }
}
