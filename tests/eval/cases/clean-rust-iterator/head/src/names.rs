/// The names that are not blank.
pub fn named(all: &[String]) -> Vec<&str> {
    all.iter()
        .map(String::as_str)
        .filter(|name| !name.trim().is_empty())
        .collect()
}
