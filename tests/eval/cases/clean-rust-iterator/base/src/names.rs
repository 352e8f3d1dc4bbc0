/// The names that are not blank.
pub fn named(all: &[String]) -> Vec<&str> {
    let mut out = Vec::new();
    for name in all {
        if !name.trim().is_empty() {
            out.push(name.as_str());
        }
    }
    out
}
