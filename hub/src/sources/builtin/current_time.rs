//! `current_time`: the hub's clock, in a time zone.

use std::sync::Arc;

use async_trait::async_trait;
use footbridge_shared::ErrorCode;
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::json;

use super::BuiltIn;
use crate::clock::SharedClock;
use crate::domain::arguments::Arguments;
use crate::domain::call::CallContext;
use crate::domain::failure::Failure;
use crate::domain::output::ToolOutput;
use crate::domain::tool::ToolHandler;

pub(super) fn tool(clock: SharedClock) -> (BuiltIn, Arc<dyn ToolHandler>) {
    let described = BuiltIn {
        name: "current_time",
        description: "The current date and time, in UTC or in a time zone of your choice.",
        search_hint: "now, date, time, weekday, time zone",
        labels: &["read-only"],
        primary: false,
        delegates: false,
        input_schema: json!({
            "type": "object",
            "properties": {"timezone": {
                "type": "string", "minLength": 1, "maxLength": 64,
                "description": "IANA name, for instance `Europe/Berlin`. Default: UTC."}},
            "additionalProperties": false,
        }),
    };
    (described, Arc::new(CurrentTime(clock)))
}

struct CurrentTime(SharedClock);

#[derive(Deserialize)]
struct Input {
    timezone: Option<String>,
}

#[async_trait]
impl ToolHandler for CurrentTime {
    async fn invoke(&self, arguments: Arguments, _: &CallContext) -> Result<ToolOutput, Failure> {
        let zone = match arguments.parse::<Input>()?.timezone {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(&name).map_err(|_| {
                Failure::not_run(ErrorCode::InvalidArguments, "/timezone: there is no such time zone")
                    .hint("use an IANA name, for instance `Europe/Berlin` or `UTC`")
            })?,
        };
        let now = self.0.now();
        let local = now.to_zoned(zone);
        Ok(ToolOutput::json(&json!({
            "time": local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            "timezone": local.time_zone().iana_name().unwrap_or("UTC"),
            "weekday": local.strftime("%A").to_string(),
            "utc": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "unixMs": now.as_millisecond(),
        })))
    }
}
