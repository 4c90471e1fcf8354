//! Errors over HTTP: the one map from codes to statuses.

use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use footbridge_shared::id::NameError;
use footbridge_shared::{ErrorCode, Outcome};

use crate::access::AccessError;
use crate::api::problem::{PROBLEM_JSON, Problem};
use crate::documents::DocumentsError;
use crate::domain::document::PathError;
use crate::domain::failure::Failure;
use crate::store::StoreError;

/// The HTTP status of a code. `docs/errors.md` shows the same table.
pub const fn status(code: ErrorCode) -> StatusCode {
    use ErrorCode as C;
    match code {
        C::BadRequest
        | C::InvalidName
        | C::InvalidPath
        | C::UnsupportedVersion
        // Only on the wire between foot and hub:
        | C::BadFrame
        | C::BadProof
        | C::InvalidToolName
        | C::InvalidToolSchema
        | C::TooManyTools
        | C::Shadowed => StatusCode::BAD_REQUEST,
        C::Unauthorized => StatusCode::UNAUTHORIZED,
        C::Forbidden | C::ConfigPath | C::PathDenied | C::PermissionDenied | C::CommandNotAllowed => StatusCode::FORBIDDEN,
        C::NotFound | C::UnknownScope | C::UnknownTool => StatusCode::NOT_FOUND,
        C::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        C::AlreadyExists
        | C::LayerReadOnly
        | C::NameTaken
        | C::IdConflict
        | C::ToolBroken
        | C::ToolChanged
        | C::FileChanged
        | C::Cancelled => StatusCode::CONFLICT,
        C::ResultExpired => StatusCode::GONE,
        C::VersionMismatch => StatusCode::PRECONDITION_FAILED,
        C::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        C::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        C::ReservedName
        | C::InvalidDocument
        | C::UnknownToolType
        | C::SecretReference
        | C::InvalidArguments
        | C::DepthExceeded
        | C::IdempotencyKeyReused
        | C::ScriptError
        | C::ScriptLimit
        | C::NotAFile
        | C::NoMatch => StatusCode::UNPROCESSABLE_ENTITY,
        C::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        C::NotSupported => StatusCode::NOT_IMPLEMENTED,
        C::ToolFailed | C::BadAnswer | C::ResultTooLarge | C::ScriptWorkerLost | C::FootGone | C::FootRestarted => {
            StatusCode::BAD_GATEWAY
        }
        C::StorageUnavailable
        | C::Draining
        | C::Overloaded
        | C::ScriptBusy
        | C::FootBusy
        | C::FootUnavailable
        | C::SandboxUnavailable
        | C::ServerUnavailable
        | C::TooManyJobs => StatusCode::SERVICE_UNAVAILABLE,
        C::DeadlineExceeded | C::Timeout => StatusCode::GATEWAY_TIMEOUT,
        C::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
    }
}

/// An error answer.
#[derive(Debug)]
pub struct ApiError(pub Box<Problem>);

/// What a route answers.
pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// An error with a message that is safe to show.
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Problem {
            r#type: Problem::type_of(code),
            title: code.meaning().to_owned(),
            status: status(code).as_u16(),
            code,
            detail: detail.into(),
            hint: None,
            outcome: None,
            retry_after_ms: None,
            errors: None,
        }))
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Says that the call which was asked for certainly did not run.
    #[must_use]
    pub fn not_run(mut self) -> Self {
        self.0.outcome = Some(Outcome::NotRun);
        self
    }

    /// Adds the places of what is wrong: a JSON array.
    #[must_use]
    pub fn errors(mut self, errors: serde_json::Value) -> Self {
        self.0.errors = Some(errors);
        self
    }

    /// There is no such tenant or project for this token: the same answer for both.
    pub fn unknown_scope() -> Self {
        Self::new(ErrorCode::UnknownScope, "there is no such tenant or project for this token").hint(
            "an admin sees what there is with `footbridge tenants list`, and makes it with `footbridge tenants put TENANT \
             --project PROJECT`",
        )
    }

    /// There is nothing of that name, or it is not the caller's to see.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no such {what} here"))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let problem = self.0;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"footbridge\""));
        }
        if [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::REQUEST_TIMEOUT].contains(&status) {
            // The rest of the body is not read, so nothing else can follow on this connection.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(ms) = problem.retry_after_ms {
            headers.insert(RETRY_AFTER, HeaderValue::from(ms.div_ceil(1000)));
        }
        response
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let mut error = Self::new(failure.code, failure.message);
        error.0.hint = failure.hint;
        error.0.outcome = Some(failure.outcome);
        error.0.retry_after_ms = failure.retry_after_ms;
        error.0.errors = failure.details.and_then(|mut details| details.get_mut("errors").map(serde_json::Value::take));
        error
    }
}

impl From<AccessError> for ApiError {
    fn from(error: AccessError) -> Self {
        if let AccessError::Store(StoreError::Unavailable(cause)) = &error {
            tracing::error!(%cause, "tokens or tenants could not be read or written");
        }
        let hint = match &error {
            AccessError::NeedsAdmin => Some("it takes the role admin"),
            AccessError::BeyondReach(_) => Some("ask whoever administers the tenant or the hub"),
            AccessError::InFolder => Some("remove its folder"),
            _ => None,
        };
        let answer = Self::new(error.code(), error.to_string());
        match hint {
            Some(hint) => answer.hint(hint),
            None => answer,
        }
    }
}

impl From<DocumentsError> for ApiError {
    fn from(error: DocumentsError) -> Self {
        let mut answer = Self::from(Failure::from(error));
        // A document is no call.
        answer.0.outcome = None;
        answer
    }
}

impl From<NameError> for ApiError {
    fn from(error: NameError) -> Self {
        Self::new(ErrorCode::InvalidName, error.to_string())
    }
}

impl From<PathError> for ApiError {
    fn from(error: PathError) -> Self {
        Self::new(ErrorCode::InvalidPath, error.to_string())
    }
}

/// Answers a path that is no route.
pub(super) async fn no_route(uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(ErrorCode::NotFound, format!("there is no route `{path}`"))
        .hint("`/openapi.json` describes all routes")
}

/// Answers a verb that the path does not have.
pub(super) async fn method_not_allowed(method: Method) -> ApiError {
    ApiError::new(ErrorCode::MethodNotAllowed, format!("this path has no `{method}`"))
        .hint("`/openapi.json` describes all routes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_table_is_the_one_in_force() {
        let table = include_str!("../../../docs/errors.md");
        for code in ErrorCode::ALL {
            let row = format!("| `{code}` | ");
            let found: Vec<&str> = table.lines().filter_map(|line| line.strip_prefix(row.as_str())).collect();
            let [cells] = found[..] else { panic!("`{code}` stands {} times in docs/errors.md", found.len()) };
            let (documented, rest) = cells.split_once(" | ").unwrap();
            assert!(rest.starts_with(code.meaning()), "the meaning of `{code}` differs in docs/errors.md");
            if documented != "-" {
                assert_eq!(documented, status(*code).as_str(), "the status of `{code}` differs in docs/errors.md");
            }
        }
    }
}
