//! The soft landing: what the tools say when a pass has to come to its end.

/// The answer to a call that is no longer served; `cause` names what is nearly used up.
pub fn landing_refusal(cause: &str) -> String {
    format!(
        "Not served: the {cause} is nearly used up. Report now what you are sure of, \
         then call finish with the files you examined. Only report, retract and finish are served."
    )
}

/// What is added to the answers of calls that are still served.
pub fn landing_hint(cause: &str) -> String {
    format!("The {cause} is nearly used up: report what is left and call finish.")
}
