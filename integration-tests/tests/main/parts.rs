//! Payloads larger than a frame, both ways, beside everything else.

use footbridge_shared::limits::{MAX_RESULT_BYTES, PART_FRAME_BYTES};
use footbridge_shared::part::{HEADER_BYTES, Part};
use futures::future::try_join_all;
use integration_tests::api::Api;
use integration_tests::eventually::eventually;
use integration_tests::foot::TestFoot;
use integration_tests::hub::TestHub;
use integration_tests::raw_foot::{Identity, RawFoot, simple_tool};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::TestResult;

const MIB: usize = 1024 * 1024;

/// A text in which no two stretches are the same.
fn text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 8);
    for n in 0_usize.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!("{n:x}\u{e9}"));
    }
    text.truncate(text.floor_char_boundary(bytes));
    text
}

/// A hub, a client, and a foot whose tools echo, with its folder.
async fn stage() -> TestResult<(TestHub, Api, TestFoot, TempDir)> {
    let hub = TestHub::start().await?;
    let root = tempfile::tempdir()?;
    let foot = TestFoot::start(&hub, "ann", "dev", root.path(), &["--echo"]).await?;
    let api = hub.api()?.with_token(&hub.token("ann", &["viewer", "engine"]).await?);
    Ok((hub, api, foot, root))
}

fn text_of(reply: &Value) -> &str {
    reply["content"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn five_mebibytes_pass_both_ways_to_the_letter() -> TestResult {
    let (_hub, api, foot, _root) = stage().await?;
    let long = text(5 * MIB);
    let reply = api.invoke("echo_text", json!({"text": long})).await?.ok()?.json();
    assert!(text_of(&reply) == long, "the text came back as it was");
    let arguments = json!({"n": 9_007_199_254_740_993_u64, "text": long});
    let reply = api.invoke("echo", arguments.clone()).await?.ok()?.json();
    assert!(reply["structured"]["arguments"] == arguments, "so did the arguments");
    assert_eq!(foot.welcomes(), 1);
    Ok(())
}

#[tokio::test]
async fn what_is_larger_than_the_limit_is_refused_and_the_connection_goes_on() -> TestResult {
    let (_hub, api, foot, _root) = stage().await?;
    let largest = api.invoke("echo_bytes", json!({"bytes": MAX_RESULT_BYTES - 100})).await?.ok()?.json();
    assert_eq!((largest["isError"].as_bool(), text_of(&largest).len()), (Some(false), MAX_RESULT_BYTES - 100));
    let refused = api.invoke("echo_bytes", json!({"bytes": 17 * MIB})).await?.ok()?.json();
    assert_eq!((&refused["code"], &refused["outcome"]), (&json!("result_too_large"), &json!("completed")), "{refused}");
    let body = api.invoke("echo", json!({"text": "x".repeat(MAX_RESULT_BYTES + MIB)})).await?;
    assert_eq!((body.status, body.code().as_str()), (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large"));
    let next = api.invoke("echo_text", json!({"text": "fine"})).await?.ok()?.json();
    assert_eq!(text_of(&next), "fine");
    assert_eq!(foot.welcomes(), 1, "{}", foot.process.output());
    Ok(())
}

#[tokio::test]
async fn a_hundred_large_results_at_once_all_arrive() -> TestResult {
    let (_hub, api, foot, _root) = stage().await?;
    let calls = (0..100).map(|n| {
        let api = &api;
        async move {
            // A foot that keeps as many results as it may says so, and is asked again.
            eventually("the foot has room for the result", || async {
                let answer = api.invoke("echo_bytes", json!({"bytes": MIB + n})).await?;
                if answer.code() == "foot_busy" {
                    return Ok(None);
                }
                Ok(Some(text_of(&answer.ok()?.json()).len()))
            })
            .await
        }
    });
    let lengths = try_join_all(calls).await?;
    assert_eq!(lengths, (0..100).map(|n| MIB + n).collect::<Vec<_>>());
    assert_eq!(foot.welcomes(), 1);
    Ok(())
}

#[tokio::test]
async fn parts_of_nothing_and_torn_ones_cost_only_their_sender() -> TestResult {
    let hub = TestHub::start().await?;
    let token = hub.token("ann", &["viewer", "engine", "foot"]).await?;
    let api = hub.api()?.with_token(&token);
    let (mut foot, _) = RawFoot::connect(&hub.url, &token, &Identity::new("laptop")?).await?;
    foot.offer(1, json!([simple_tool("work")])).await?;

    // Parts of calls that nobody made, from the middle and in any order: they are dropped.
    let data = vec![b'x'; PART_FRAME_BYTES - HEADER_BYTES];
    for n in 0..200_u32 {
        let part = Part { id: [u8::try_from(n % 7)?; 16], seq: 1 + n % 11, last: n % 13 == 0, data: &data };
        foot.send_binary(part.encode()?).await?;
    }
    let working = async { api.invoke("work", json!({})).await };
    let answering = async {
        let call = foot.receive_kind("call").await?;
        // The right parts in the wrong order, and one of them twice.
        let id = footbridge_shared::id::CallId::parse(call["call"].as_str().unwrap_or_default())?;
        let id = id.to_bytes().ok_or("the call has no parts")?;
        let result = json!({"type": "result", "call": call["call"], "origin": call["origin"],
            "content": [{"type": "text", "text": "in three"}], "isError": false})
        .to_string();
        let cut: Vec<&[u8]> = result.as_bytes().chunks(result.len() / 3 + 1).collect();
        let part = |seq: u32| {
            let data = cut.get(seq as usize).copied().unwrap_or_default();
            Part { id, seq, last: seq == 2, data }.encode()
        };
        foot.send_binary(part(1)?).await?;
        assert_eq!(foot.receive_kind("partsFrom").await?["seq"], 0);
        for seq in [0, 0, 1, 2, 2] {
            foot.send_binary(part(seq)?).await?;
        }
        TestResult::Ok(foot)
    };
    let (reply, answered) = tokio::join!(working, answering);
    assert_eq!(text_of(&reply?.ok()?.json()), "in three");
    let mut foot = answered?;

    for frame in [Vec::new(), vec![0; HEADER_BYTES - 1], vec![0; 70_000]] {
        foot.send_binary(frame).await?;
    }
    let closed = loop {
        let frame = foot.receive().await?;
        if frame["type"] == "close" {
            break frame;
        }
    };
    assert_eq!(closed["code"], 4400, "{closed}");
    assert_eq!(api.get("tools").await?.status, StatusCode::OK);
    Ok(())
}
