//! `subscriptions/listen`: how a server of 2026-07-28 tells of changes. It is a request that stays open.

use std::time::Duration;

use footbridge_shared::message::Raw;
use serde_json::value::RawValue;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::client::{Connection, RequestOptions};
use crate::error::RequestError;
use crate::fields::{Fields, read_field};

/// The request that stays open.
pub(crate) const LISTEN: &str = "subscriptions/listen";

/// How long to wait before listening again.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// How long to wait at most, and how long a subscription has to last to count as one that works.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// What a client wants to be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subscriptions {
    /// That the tools are others now.
    pub tools: bool,
    /// That the prompts are.
    pub prompts: bool,
    /// That the list of resources is.
    pub resources: bool,
    /// That one of these resources is, by URI.
    pub uris: Vec<String>,
}

impl Subscriptions {
    /// The lists of which a server with these capabilities says that it tells.
    pub fn offered(capabilities: &RawValue) -> Self {
        let tells = |name| read_field::<Raw>(capabilities, name).and_then(|of| read_field(&of, "listChanged"));
        let tells = |name| tells(name).unwrap_or(false);
        Self { tools: tells("tools"), prompts: tells("prompts"), resources: tells("resources"), uris: Vec::new() }
    }

    /// Whether there is nothing to be told.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The `notifications` of the request.
    pub fn to_raw(&self) -> Raw {
        let mut filter = Fields::new();
        for (name, wanted) in [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ] {
            if wanted {
                filter.set_value(name, &true);
            }
        }
        if !self.uris.is_empty() {
            filter.set_value("resourceSubscriptions", &self.uris);
        }
        filter.to_raw()
    }
}

impl Connection {
    /// Listens until `until` fires, and again when the stream breaks. What is told comes to
    /// [`Events::notification`](crate::Events::notification), with `notifications/subscriptions/acknowledged` each time
    /// listening began: what was read before it may have changed since.
    ///
    /// # Errors
    /// The server does not want to be listened to, or the connection has ended.
    pub async fn listen(&self, wanted: &Subscriptions, until: CancellationToken) -> Result<(), RequestError> {
        let mut params = Fields::new();
        params.set("notifications", wanted.to_raw());
        let params = params.to_raw();
        let mut wait = FIRST_WAIT;
        loop {
            let began = Instant::now();
            let options = RequestOptions { cancel: until.clone(), ..RequestOptions::default() };
            match self.request(LISTEN, Some(params.clone()), options).await {
                Err(RequestError::Cancelled) => return Ok(()),
                Err(RequestError::Lost(_) | RequestError::NotSent(_) | RequestError::BadAnswer(_)) | Ok(_)
                    if !self.closed().is_cancelled() => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error),
            }
            if began.elapsed() > MAX_WAIT {
                wait = FIRST_WAIT;
            }
            tokio::select! {
                () = until.cancelled() => return Ok(()),
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(MAX_WAIT);
        }
    }
}
