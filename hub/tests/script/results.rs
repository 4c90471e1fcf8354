//! What a caller gets.

use footbridge_hub::domain::script::ScriptRunner as _;
use footbridge_shared::{ErrorCode, Outcome};
use serde_json::{Value, json};

use crate::stage::{PLENTY, Stage, TestResult, raw, request, structured};

#[tokio::test]
async fn a_value_comes_structured_and_as_text() -> TestResult {
    let stage = Stage::new(1).await?;
    let mut request = request("const { b } = vance.params; a + b + 1n", PLENTY);
    let big = serde_json::value::RawValue::from_string("123456789012345678901".to_owned())?;
    request.inputs.push(("a".to_owned(), big));
    request.params = serde_json::value::RawValue::from_string(r#"{"b":9007199254740993}"#.to_owned())?;
    let output = stage.pool.run(request, &stage.call(PLENTY)?).await?;
    assert!(!output.is_error);
    let text = output.structured.as_ref().ok_or("nothing structured")?.get();
    assert!(text.starts_with(r#"{"value":123465796211600419895,"durationMs":"#), "{text}");
    assert_eq!(output.joined_text(), text);
    Ok(())
}

#[tokio::test]
async fn an_exception_is_a_result_that_says_where() -> TestResult {
    let stage = Stage::new(1).await?;
    let output = stage.run("let a = 1;\na.b.c").await?;
    assert!(output.is_error);
    assert_eq!(output.code, Some(ErrorCode::ScriptError));
    let structured = structured(&output)?;
    assert_eq!(structured["error"], "TypeError");
    assert_eq!(structured["message"], "cannot read property 'c' of undefined");
    assert_eq!((structured["line"].as_u64(), structured["column"].as_u64()), (Some(2), Some(1)));
    assert!(structured["durationMs"].is_u64());
    assert_eq!(output.joined_text(), "TypeError: cannot read property 'c' of undefined (scripts/test.js:2:1)");

    let output = stage.run("return 1").await?;
    assert!(output.hint.is_some_and(|hint| hint.contains("last expression")));
    Ok(())
}

#[tokio::test]
async fn limits_have_codes_of_their_own() -> TestResult {
    let stage = Stage::new(1).await?;
    for (source, code, error) in [
        ("let a = []; for (;;) a.push('x'.repeat(1000) + a.length)", ErrorCode::ScriptLimit, "InternalError"),
        ("const f = () => f(); f()", ErrorCode::ScriptLimit, "RangeError"),
        ("'x'.repeat(9e6)", ErrorCode::ResultTooLarge, "RangeError"),
    ] {
        let output = stage.run(source).await?;
        assert_eq!((output.is_error, output.code), (true, Some(code)), "{source} {}", output.joined_text());
        assert_eq!(structured(&output)?["error"], error, "{source}");
    }
    Ok(())
}

#[tokio::test]
async fn inner_calls_give_values_or_throw() -> TestResult {
    let stage = Stage::new(1).await?;
    for (source, expected) in [
        ("vance.tools.call('echo', { id: 9007199254740993n })", json!({"id": 9_007_199_254_740_993_u64})),
        ("vance.tools.call('text', { text: '[1, 2]' })", json!([1, 2])),
        ("vance.tools.call('text', { text: 'plain' })", json!("plain")),
        ("vance.tools.call('text', { text: '' })", json!("")),
        (
            "try { vance.tools.call('fail') } catch (e) { [e.message, e.code, e.hint, e.outcome] }",
            json!(["it did not work", "tool_failed", "try less", "completed"]),
        ),
        ("try { vance.tools.call('nobody') } catch (e) { [e.code, e.outcome] }", json!(["unknown_tool", "not_run"])),
        ("vance.tools.has('nobody')", json!(false)),
        ("vance.tools.list()", json!([])),
        ("vance.context", json!({"tenant": "acme", "project": "main", "process": null, "user": "ada"})),
    ] {
        assert_eq!(stage.value(source).await?, expected, "{source}");
    }
    let output = stage.run("vance.tools.call('fail')").await?;
    assert_eq!(output.code, Some(ErrorCode::ScriptError));
    assert_eq!(structured(&output)?["error"], "ToolError");
    Ok(())
}

#[tokio::test]
async fn documents_are_read_through_the_cascade_and_secrets_are_not() -> TestResult {
    let stage = Stage::new(1).await?;
    assert_eq!(stage.value("vance.documents.read('notes/a.md')").await?, json!("notes/a.md of acme/main"));
    for (path, code) in [
        ("missing.md", "not_found"),
        ("_secrets/key", "not_found"),
        ("a/_b/c", "not_found"),
        ("../../etc/hostname", "invalid_path"),
        ("/etc/hostname", "invalid_path"),
    ] {
        let source = format!("try {{ vance.documents.read('{path}') }} catch (e) {{ e.code }}");
        assert_eq!(stage.value(&source).await?, json!(code), "{path}");
    }
    Ok(())
}

#[tokio::test]
async fn what_cannot_run_is_refused_before_it_does() -> TestResult {
    let stage = Stage::new(1).await?;
    let large = Value::String("x".repeat(9_000_000));
    let mut refused = vec![request(&" ".repeat(1024 * 1024 + 1), PLENTY), request("1\0", PLENTY)];
    for (name, value) in [("vance", json!(1)), ("undefined", json!(1)), ("large", large)] {
        let mut request = request("1", PLENTY);
        request.inputs.push((name.to_owned(), raw(&value)));
        refused.push(request);
    }
    for request in refused {
        let failure = stage.pool.run(request, &stage.call(PLENTY)?).await.err().ok_or("it ran")?;
        assert_eq!((failure.code, failure.outcome), (ErrorCode::InvalidArguments, Outcome::NotRun));
    }
    Ok(())
}

#[tokio::test]
async fn nothing_of_one_script_is_left_for_the_next() -> TestResult {
    let stage = Stage::new(1).await?;
    stage.value("globalThis.left = 1; Object.prototype.left = 2; Array.prototype.push = null; left").await?;
    assert_eq!(stage.value("const a = []; a.push(typeof left); a").await?, json!(["undefined"]));
    assert_eq!(stage.pool.processes(), 1, "both ran in the same process");
    Ok(())
}
