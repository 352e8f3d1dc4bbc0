//! What goes wrong, and what becomes of the pass: its class, its time, and what is left of it.

use std::time::{Duration, Instant};

use ecr::gateway::{PassLimits, Protocol};
use serde_json::json;

use super::Subject;
use super::rig::{Rig, class, finish, look};
use crate::support::model_server::{Piece, Reply, Script, Step};

/// One fault of a provider.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    /// What happens to every call.
    pub(crate) step: Step,
    /// What the pass comes to.
    pub(crate) class: &'static str,
    /// How often the provider is asked at most.
    pub(crate) most: usize,
}

/// An error body that is one in each protocol.
fn error(kind: &str, message: &str) -> String {
    json!({"type": "error", "error": {"type": kind, "code": kind, "message": message}}).to_string()
}

/// A status that the model door does not ask again for.
fn last(status: u16, body: &str) -> Step {
    Step::status(status, body).header("x-should-retry", "false")
}

/// Events after which an answer has begun and not ended.
fn begun(subject: &Subject) -> usize {
    match subject.protocol {
        Protocol::OpenAiChat => 1,
        Protocol::AnthropicMessages | Protocol::OpenAiResponses => 2,
    }
}

/// The table that every tool has to pass.
pub(crate) fn table(subject: &Subject) -> Vec<Fault> {
    let reply = || Reply::text(&"word ".repeat(200));
    let events = begun(subject);
    let busy = match subject.protocol {
        Protocol::AnthropicMessages => {
            "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"
        }
        Protocol::OpenAiResponses => {
            "event: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"busy\"}\n\n"
        }
        Protocol::OpenAiChat => {
            "data: {\"error\":{\"message\":\"busy\",\"type\":\"overloaded_error\"}}\n\n"
        }
    };
    #[rustfmt::skip]
    let table = vec![
        ("401", Step::status(401, &error("authentication_error", "Incorrect key sk-abc")), "auth", 1),
        ("403", Step::status(403, &error("permission_error", "no")), "auth", 1),
        ("402", Step::status(402, &error("billing_error", "pay")), "usage", 1),
        ("404", Step::status(404, &error("not_found_error", "no such model")), "unavailable", 1),
        ("400", Step::status(400, &error("invalid_request_error", "bad tools")), "protocol", 1),
        ("429", last(429, &error("rate_limit_error", "slow")), "rate", 1),
        ("429 for an hour", Step::status(429, &error("rate_limit_error", "slow")).header("retry-after", "3600"), "usage", 1),
        ("quota", Step::status(429, &error("insufficient_quota", "plan")), "usage", 1),
        ("500", last(500, &error("api_error", "oops")), "transient", 1),
        ("502 html", last(502, "<html>Bad gateway</html>"), "transient", 1),
        ("529", last(529, &error("overloaded_error", "busy")), "overloaded", 1),
        ("overflow", Step::status(400, &error("context_length_exceeded", "too long")), "overflow", 1),
        ("413", Step::status(413, ""), "overflow", 1),
        ("refusal", Reply::text("No.").refused().into(), "refused", 2),
        ("html", Step::status(200, "<html>Sign in</html>"), "protocol", 1),
        ("no json", Step::events(vec![Piece::Data("data: {\"id\": \"x\", broken\n\n".into())]), "protocol", 1),
        ("hang", Step::Hang, "stalled", 1),
        ("hang in the middle", Step::Broken(reply(), events, Piece::Hang), "stalled", 3),
        ("cut in the middle", Step::Broken(reply(), events, Piece::Cut), "transient", 3),
        ("no end", Step::Broken(reply(), events, Piece::Data("".into())), "transient", 3),
        ("overloaded in the middle", Step::Broken(reply(), events, Piece::Data(busy.into())), "overloaded", 3),
        ("cut by the output limit", Reply::text("I think").truncated().into(), "truncated", 4),
        ("nothing", Reply::text("").into(), "truncated", 3),
    ];
    table
        .into_iter()
        .map(|(name, step, class, most)| Fault {
            name,
            step,
            class,
            most,
        })
        .collect()
}

pub(super) async fn every_fault_has_its_class_and_leaves_nothing(subject: &'static Subject) {
    let mut wrong = Vec::new();
    for fault in table(subject) {
        let name = fault.name;
        let script = Script::new((0..40).map(|_| fault.step.clone()));
        let Some(rig) = Rig::new(subject, script).await else {
            return;
        };
        let begun = Instant::now();
        let result = rig.run().await;
        let asked = rig.script.requests().len();
        let took = begun.elapsed();
        if class(&result) != fault.class || asked > fault.most || took > Duration::from_secs(40) {
            wrong.push(format!(
                "{name}: asked {asked} of {}, {took:?}, {} expected: {result:?}",
                fault.most, fault.class
            ));
        }
        let words = format!("{result:?} {:?}", rig.told.0.lock().unwrap());
        assert!(!words.contains("sk-abc"), "{name}: {words}");
        assert!(!words.contains(&super::rig::key()), "{name}: {words}");
    }
    assert_eq!(wrong, [] as [String; 0], "{}", wrong.join("\n"));
}

pub(super) async fn what_breaks_off_once_is_asked_again(subject: &'static Subject) {
    let broken = Step::Broken(
        Reply::text(&"word ".repeat(200)),
        begun(subject),
        Piece::Cut,
    );
    let script = Script::new([look(subject).into(), broken, finish(subject).into()]);
    let Some(rig) = Rig::new(subject, script).await else {
        return;
    };
    let result = rig.run().await;
    assert_eq!(class(&result), "complete", "{result:?}");
}

pub(super) async fn a_dead_tool_door_is_no_review(subject: &'static Subject) {
    // Some go on without their tools and call it a success; here nothing is sent then.
    let script = Script::new([finish(subject).into()]);
    let limits = PassLimits::default();
    let Some(rig) = Rig::behind(subject, script, limits, None).await else {
        return;
    };
    let result = rig.run().await;
    assert!(
        matches!(class(&result), "protocol" | "unavailable"),
        "{result:?}"
    );
    assert_eq!(rig.script.requests().len(), 0, "nothing was sent");
}
