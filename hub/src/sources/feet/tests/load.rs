//! Many callers, several feet: nothing lost, nothing crossed, nothing left behind.

use std::sync::Arc;

use serde_json::json;
use tokio::task::JoinSet;

use super::harness::Hub;

const CALLERS: usize = 64;
const FEET: usize = 4;
const CALLS: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_callers_on_four_feet_cross_nothing() {
    let hub = Arc::new(Hub::new().await);
    let mut feet = JoinSet::new();
    for index in 0..FEET {
        let mut foot = hub.foot("ada", &format!("foot{index}")).await;
        foot.offer(1, &["echo"]).await;
        feet.spawn(foot.echo());
    }
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let hub = hub.clone();
        callers.spawn(async move {
            for number in 0..CALLS {
                let foot = format!("foot{}", (caller + number) % FEET);
                let arguments = json!({"caller": caller, "number": number});
                let answer = hub.call("ada", &format!("{foot}__echo"), arguments.clone()).await.text().await;
                assert_eq!(answer, format!("{foot} echo {arguments}"));
            }
        });
    }
    while let Some(done) = callers.join_next().await {
        done.unwrap();
    }
    let counts = hub.registry.counts();
    assert_eq!((counts.connections, counts.feet, counts.pending, counts.views), (FEET, FEET, 0, 1));
    assert_eq!(hub.registry.metrics().orphan_results, 0);
    assert_eq!(hub.lifecycle.shut_down(std::time::Duration::from_secs(5)).await, 0);
    assert_eq!(feet.join_all().await.len(), FEET);
}
