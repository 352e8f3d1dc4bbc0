//! Every fixture is read by the loader and validated with the published schema; the two have to agree,
//! except where a bad fixture says why the schema cannot tell.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ecr::config::{
    ConfigErrors, Diagnostic, ReviewConfig, Source, parse_config, parse_routing, parse_scope,
    schema,
};
use jsonschema::Validator;
use serde_json::Value;

fn fixtures(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/config")
        .join(folder);
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

/// The loader's answer: the warnings, or the errors.
fn load(name: &str, text: &str) -> Result<Vec<Diagnostic>, ConfigErrors> {
    let source = Source::from_bytes(&format!("{name}.jsonc"), text.as_bytes())?;
    if name.starts_with("routing-") {
        parse_routing(&source).map(|(_, warnings)| warnings)
    } else if name.starts_with("scope-") {
        parse_scope(&source, &ReviewConfig::default()).map(|(_, warnings)| warnings)
    } else {
        parse_config(&source).map(|(_, warnings)| warnings)
    }
}

struct Schemas {
    config: Validator,
    routing: Validator,
}

impl Schemas {
    fn new() -> Self {
        let build = |schema: &Value| jsonschema::draft202012::new(schema).unwrap();
        Self {
            config: build(&schema::config()),
            routing: build(&schema::routing()),
        }
    }

    /// False too for what is no JSON at all, or has numbers beyond JSON's.
    fn accept(&self, name: &str, text: &str) -> bool {
        let text = text.trim_start_matches('\u{feff}');
        let value: Option<Value> =
            jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
                .ok()
                .flatten();
        let validator = if name.starts_with("routing-") {
            &self.routing
        } else {
            &self.config
        };
        value.is_some_and(|value| validator.is_valid(&value))
    }
}

#[test]
fn good_ones_pass_the_loader_and_the_schema() {
    let schemas = Schemas::new();
    let fixtures = fixtures("good");
    assert!(fixtures.len() >= 25);
    for (name, text) in fixtures {
        let warnings = load(&name, &text).unwrap_or_else(|errors| panic!("{name}: {errors}"));
        let mut warned: Vec<_> = warnings.iter().filter_map(|w| w.key.as_deref()).collect();
        warned.sort_unstable();
        let expected: &[&str] = match name.as_str() {
            "later-features" => &["feedback", "inline", "jev", "research", "stack"],
            "relative-own" => &["jev", "research"],
            "scope-review-is-ignored" => &["review", "runs"],
            _ => &[],
        };
        assert_eq!(warned, expected, "{name}");
        assert!(
            schemas.accept(&name, &text),
            "{name}: the schema refuses it"
        );
    }
}

#[test]
fn bad_ones_fail_the_loader_and_where_it_can_tell_the_schema() {
    let schemas = Schemas::new();
    let fixtures = fixtures("bad");
    assert!(fixtures.len() >= 25);
    for (name, text) in fixtures {
        let head = text
            .lines()
            .next()
            .unwrap()
            .strip_prefix("// says: ")
            .unwrap();
        let (says, exception) = match head.split_once(" | schema accepts: ") {
            Some((says, why)) => (says, Some(why)),
            None => (head, None),
        };
        let errors = load(&name, &text).expect_err(&name);
        let rendered = errors.to_string();
        assert!(
            rendered.contains(says.trim_end()),
            "{name} should say {says:?}:\n{rendered}"
        );
        assert!(
            rendered.contains(&format!("{name}.jsonc")),
            "{name}: {rendered}"
        );
        for error in errors.diagnostics() {
            assert!(
                error.position.is_some() || name == "only-comments",
                "{name}: {rendered}"
            );
            assert!(
                error.expected.is_some() || error.help.is_some(),
                "{name} does not say what is expected or what to do:\n{rendered}"
            );
        }
        match exception {
            None => assert!(
                !schemas.accept(&name, &text),
                "{name}: the schema accepts it"
            ),
            // JSON that the schema could judge has to be accepted, or the exception is not needed.
            Some(why) if !matches!(why, "not JSON" | "the value has no JSON number") => {
                assert!(
                    schemas.accept(&name, &text),
                    "{name}: the exception is not needed"
                );
            }
            Some(_) => {}
        }
    }
}

#[test]
fn all_problems_of_a_file_are_said_in_order() {
    let text = "{\n  \"polcy\": {},\n  \"chunk\": { \"maxFiles\": 0, \"x\": 1 },\n  \"model\": 3,\n  \"model\": \"a/b\"\n}";
    let errors = load("many", text).unwrap_err();
    let places: Vec<_> = errors.diagnostics().iter().map(Diagnostic::place).collect();
    assert_eq!(
        places,
        [
            "many.jsonc:2:3",
            "many.jsonc:3:26",
            "many.jsonc:3:29",
            "many.jsonc:5:3"
        ]
    );
    let keys: Vec<_> = errors
        .diagnostics()
        .iter()
        .filter_map(|d| d.key.as_deref())
        .collect();
    assert_eq!(keys, ["polcy", "chunk.maxFiles", "chunk.x"]);
}

#[test]
fn a_file_full_of_mistakes_is_answered_with_a_bounded_list() {
    let keys: Vec<_> = (0..20_000).map(|n| format!("\"k{n}\": 1")).collect();
    let errors = load("full", &format!("{{{}}}", keys.join(",\n"))).unwrap_err();
    assert!(errors.diagnostics().len() < 50);
    assert!(errors.to_string().contains("more problems than are listed"));
}

/// The loader understands these keywords only; one it does not know would be published and not checked.
#[test]
fn the_schemas_use_only_keywords_that_the_loader_checks() {
    const CHECKED: &[&str] = &[
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "enum",
        "exclusiveMinimum",
        "items",
        "maxLength",
        "maximum",
        "minItems",
        "minLength",
        "minimum",
        "oneOf",
        "pattern",
        "properties",
        "propertyNames",
        "required",
        "type",
    ];
    const TOLD: &[&str] = &[
        "$defs",
        "$schema",
        "default",
        "deprecated",
        "description",
        "examples",
        "title",
        "x-expected",
    ];
    fn walk(schema: &Value, found: &mut BTreeSet<String>) {
        let Some(object) = schema.as_object() else {
            return;
        };
        for (key, value) in object {
            found.insert(key.clone());
            match key.as_str() {
                "properties" | "$defs" => value
                    .as_object()
                    .unwrap()
                    .values()
                    .for_each(|v| walk(v, found)),
                "anyOf" | "oneOf" => value
                    .as_array()
                    .unwrap()
                    .iter()
                    .for_each(|v| walk(v, found)),
                "items" | "additionalProperties" | "propertyNames" => walk(value, found),
                _ => {}
            }
        }
    }
    for schema in [schema::config(), schema::routing()] {
        assert_eq!(
            schema["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        let mut found = BTreeSet::new();
        walk(&schema, &mut found);
        let strange: Vec<_> = found
            .iter()
            .filter(|k| !CHECKED.contains(&k.as_str()) && !TOLD.contains(&k.as_str()))
            .collect();
        assert!(strange.is_empty(), "{strange:?}");
        assert!(!schema.to_string().contains("null"), "no key takes null");
    }
}

#[test]
fn every_key_of_the_schemas_is_described() {
    fn walk(path: &str, schema: &Value) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let text = property["description"].as_str().unwrap_or_default();
            assert!(
                text.len() > 10 && !text.contains('\n'),
                "{path}.{name}: {text:?}"
            );
        }
        for (name, inner) in schema["$defs"].as_object().into_iter().flatten() {
            walk(name, inner);
        }
    }
    walk("config", &schema::config());
    walk("routing", &schema::routing());
}
