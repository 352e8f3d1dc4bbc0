//! Whole setups: the embedded one, folders of a tree, folders from elsewhere, overrides.

use ecr::config::{
    ConfigErrors, EMBEDDED_SETUP, EngineChoice, LoadedConfig, Overrides, ReviewConfig,
    SetupLocation, SetupOrigin, Source, load, load_routing, parse_config, parse_scope, schema,
};
use ecr::model::{ModelId, RepoPath};
use ecr::tree::{EntryKind, MemoryTree};

fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

fn tree(folder: &str, files: &[(&str, &str)]) -> MemoryTree {
    let mut tree = MemoryTree::new();
    for (name, text) in files {
        let name = if folder.is_empty() {
            (*name).to_owned()
        } else {
            format!("{folder}/{name}")
        };
        tree.insert(path(&name), text.as_bytes());
    }
    tree
}

const SMALL: &[(&str, &str)] = &[
    ("config.jsonc", "{ \"model\": \"conf/m\" }"),
    ("shared.md", "Rules."),
    ("coordinator.md", "Merge."),
    ("agents/b.md", "---\nmodel: front/m\n---\nLook at b."),
    ("agents/a.md", "Look at a."),
    ("agents/notes.txt", "not an agent"),
    ("agents/deep/c.md", "not an agent"),
];

fn discover(tree: &MemoryTree, overrides: &Overrides) -> Result<LoadedConfig, ConfigErrors> {
    load(tree, &SetupLocation::Discover, overrides)
}

fn models(loaded: &LoadedConfig) -> Vec<&str> {
    loaded
        .agents
        .iter()
        .map(|agent| &agent.prompt)
        .chain([&loaded.coordinator])
        .map(|prompt| prompt.model.as_ref().map_or("-", ModelId::as_str))
        .collect()
}

#[test]
fn without_a_setup_the_embedded_one_is_used() {
    let loaded = discover(&MemoryTree::new(), &Overrides::default()).unwrap();
    assert_eq!(loaded.setup, SetupOrigin::Embedded);
    assert_eq!(loaded.config, ReviewConfig::default());
    let ids: Vec<_> = loaded.agents.iter().map(|a| a.id.as_str()).collect();
    assert_eq!(ids, ["consistency", "correctness", "security"]);
    assert!(
        loaded
            .agents
            .iter()
            .all(|a| !a.description.is_empty() && a.prompt.text.starts_with("# "))
    );
    assert!(loaded.models().is_empty() && loaded.warnings.is_empty());
    assert!(loaded.shared.contains("what breaks, for whom, and when"));
}

#[test]
fn a_setup_folder_is_found_and_read() {
    for folder in [".expo-code-review", ".expo-agents/code-review"] {
        let loaded = discover(&tree(folder, SMALL), &Overrides::default()).unwrap();
        assert_eq!(loaded.setup, SetupOrigin::InRepository(Some(path(folder))));
        let ids: Vec<_> = loaded.agents.iter().map(|a| a.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        assert_eq!(
            loaded.agents[0].prompt.origin,
            format!("{folder}/agents/a.md")
        );
        assert_eq!(models(&loaded), ["conf/m", "front/m", "conf/m"]);
    }
}

#[test]
fn a_model_named_outside_wins_and_blank_is_unset() {
    let tree = tree(".expo-code-review", SMALL);
    let with = |flag: Option<&str>, variable: Option<&str>| {
        let overrides = Overrides {
            model: flag.map(str::to_owned),
            reviewer_model: variable.map(str::to_owned),
        };
        discover(&tree, &overrides)
    };
    for blank in [None, Some(""), Some("   ")] {
        assert_eq!(
            models(&with(None, blank).unwrap()),
            ["conf/m", "front/m", "conf/m"]
        );
    }
    assert_eq!(models(&with(None, Some(" env/m ")).unwrap()), ["env/m"; 3]);
    assert_eq!(
        models(&with(Some("flag/m"), Some("env/m")).unwrap()),
        ["flag/m"; 3]
    );
    for (flag, variable, name) in [
        (Some(""), None, "--model"),
        (None, Some("a b"), "REVIEWER_MODEL"),
    ] {
        let errors = with(flag, variable).unwrap_err();
        assert_eq!(&*errors.diagnostics()[0].origin, name);
    }
}

#[test]
fn config_jsonc_wins_over_config_json() {
    let mut files = SMALL.to_vec();
    files.push(("config.json", "{ \"model\": \"other/m\" }"));
    let both = discover(&tree(".expo-code-review", &files), &Overrides::default()).unwrap();
    assert_eq!(both.config.model, ModelId::new("conf/m").ok());
    let one = discover(
        &tree(".expo-code-review", &files[1..]),
        &Overrides::default(),
    )
    .unwrap();
    assert_eq!(one.config.model, ModelId::new("other/m").ok());
}

#[test]
fn a_named_folder_and_one_from_elsewhere() {
    let inside = tree("custom", SMALL);
    let location = SetupLocation::InRepository(Some(path("custom")));
    assert_eq!(
        load(&inside, &location, &Overrides::default())
            .unwrap()
            .agents
            .len(),
        2
    );
    let missing = SetupLocation::InRepository(Some(path("other")));
    let error = load(&inside, &missing, &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("other: there is no such setup folder"),
        "{error}"
    );

    let mut broken = SMALL.to_vec();
    broken[0].1 = "{ \"x\": 1 }";
    let outside = |files: &[(&str, &str)]| SetupLocation::Outside {
        folder: "/srv/ecr".to_owned(),
        files: tree("", files),
    };
    let loaded = load(&inside, &outside(SMALL), &Overrides::default()).unwrap();
    assert_eq!(loaded.setup, SetupOrigin::Outside("/srv/ecr".to_owned()));
    let error = load(&inside, &outside(&broken), &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("error: /srv/ecr/config.jsonc:1:3: unknown key `x`"),
        "{error}"
    );
}

#[test]
fn problems_of_all_files_are_given_together() {
    let files = [
        ("config.jsonc", "{ \"modle\": \"a/b\" }"),
        ("agents/verifier.md", "x"),
        ("agents/a.md", "---\nengine: x\n---\nLook."),
    ];
    let errors = discover(&tree(".expo-code-review", &files), &Overrides::default()).unwrap_err();
    let text = errors.to_string();
    for said in [
        "config.jsonc:1:3: unknown key `modle`",
        "`verifier` is a role of the review itself",
        "a.md:2:1: `engine` cannot be `x`",
    ] {
        assert!(text.contains(said), "{said}:\n{text}");
    }
}

#[test]
fn what_a_setup_folder_leaves_out_is_the_embedded_part() {
    let only = [("config.jsonc", "{ \"model\": \"conf/m\" }")];
    let loaded = discover(&tree(".expo-code-review", &only), &Overrides::default()).unwrap();
    assert!(loaded.shared.contains("# Rules of this review"));
    assert_eq!(models(&loaded), ["conf/m"; 4]);
    assert!(loaded.warnings.is_empty());

    let only = [("agents/a.md", "Look at a.")];
    let loaded = discover(&tree(".expo-code-review", &only), &Overrides::default()).unwrap();
    assert_eq!(loaded.config, ReviewConfig::default());
    assert_eq!(loaded.agents.len(), 1);
}

#[test]
fn a_link_or_a_huge_file_is_an_error() {
    let said = |tree: &MemoryTree| {
        discover(tree, &Overrides::default())
            .unwrap_err()
            .to_string()
    };
    let mut link = tree(".expo-code-review", SMALL);
    link.insert_as(
        path(".expo-code-review/agents/z.md"),
        EntryKind::Symlink,
        *b"/etc/passwd",
    );
    assert!(said(&link).contains("symbolic link"));
    let mut huge = tree(".expo-code-review", SMALL);
    huge.insert(path(".expo-code-review/agents/z.md"), vec![b'x'; 2 << 20]);
    assert!(said(&huge).contains("over the limit"));
    let mut bytes = tree(".expo-code-review", SMALL);
    bytes.insert(path(".expo-code-review/shared.md"), *b"a\nb\xff");
    assert!(said(&bytes).contains("line 2 is not valid UTF-8"));
}

#[test]
fn routing_is_read_from_the_same_folder() {
    let text = r#"{ "scopes": [{ "name": "all", "paths": ["**"], "config": "." }] }"#;
    let mut tree = tree(".expo-code-review", SMALL);
    assert!(
        load_routing(&tree, &SetupLocation::Discover)
            .unwrap()
            .is_none()
    );
    assert!(
        load_routing(&MemoryTree::new(), &SetupLocation::Discover)
            .unwrap()
            .is_none()
    );
    tree.insert(path(".expo-code-review/routing.jsonc"), text.as_bytes());
    let (manifest, _) = load_routing(&tree, &SetupLocation::Discover)
        .unwrap()
        .unwrap();
    assert_eq!(manifest.scopes[0].name.as_str(), "all");
    tree.insert(path(".expo-code-review/routing.jsonc"), *b"{");
    assert!(load_routing(&tree, &SetupLocation::Discover).is_err());
}

#[test]
fn a_scope_keeps_what_is_locked_to_the_root() {
    let root = r#"{ "model": "root/m", "commentTag": "tag", "policy": { "maxCostUsd": 3, "maxFindings": 9 },
        "engines": { "x": "api" }, "send": { "never": ["s/**"] }, "auth": { "tokenEnv": "T" }, "review": { "trigger": "label" } }"#;
    let (root, _) = parse_config(&Source::new("root", root)).unwrap();
    let scope = r#"{ "policy": { "includeSuggestions": true } }"#;
    let (scope, _) = parse_scope(&Source::new("scope", scope), &root).unwrap();
    assert!(scope.policy.include_suggestions);
    assert_eq!(scope.policy.max_cost_usd, Some(3.0));
    assert_eq!(scope.policy.max_findings, None);
    assert_eq!(scope.model, root.model);
    assert_eq!(
        (
            &scope.auth,
            &scope.engines,
            &scope.send_never,
            &scope.review,
            &scope.comment_tag
        ),
        (
            &root.auth,
            &root.engines,
            &root.send_never,
            &root.review,
            &root.comment_tag
        )
    );
    assert_eq!(scope.engine_for("x"), EngineChoice::Api);
    assert_eq!(scope.engine_for("openai"), EngineChoice::Codex);
}

/// Takes the comment marks off the lines that begin with `mark`.
fn uncommented(text: &str, mark: &str) -> String {
    text.lines()
        .map(|line| match line.trim_start().strip_prefix(mark) {
            Some(rest) => format!(
                "\"{rest}{}\n",
                if rest.trim_end().ends_with(',') {
                    ""
                } else {
                    ","
                }
            ),
            None => format!("{line}\n"),
        })
        .collect()
}

#[test]
fn the_embedded_configuration_shows_every_key_and_the_true_defaults() {
    let (_, text) = EMBEDDED_SETUP
        .iter()
        .find(|(name, _)| *name == "config.jsonc")
        .unwrap();
    let parse = |text: &str| {
        let (config, warnings) = parse_config(&Source::new("config.jsonc", text))
            .unwrap_or_else(|errors| panic!("{errors}"));
        assert!(warnings.is_empty());
        config
    };
    assert_eq!(parse(text), ReviewConfig::default());
    let defaults = uncommented(text, "// \"");
    assert_eq!(parse(&defaults), ReviewConfig::default());
    let full = uncommented(&defaults, "// e.g. \"");
    let config = parse(&full);
    assert!(
        config.model.is_some() && config.auth.len() == 1 && config.policy.max_cost_usd.is_some()
    );

    let value: serde_json::Value =
        jsonc_parser::parse_to_serde_value(&full, &jsonc_parser::ParseOptions::default()).unwrap();
    let schema = schema::config();
    for (key, property) in schema["properties"].as_object().unwrap() {
        if property["deprecated"] == true {
            continue;
        }
        assert!(value.get(key).is_some(), "`{key}` is not shown");
        let inner = property["$ref"]
            .as_str()
            .and_then(|r| schema.pointer(&r[1..]))
            .unwrap_or(property);
        for inner_key in inner["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(k, _)| k)
        {
            let shown = &value[key][inner_key];
            assert!(!shown.is_null(), "`{key}.{inner_key}` is not shown");
            // The default that an editor shows is the one in the file, and so the one that holds.
            if let Some(default) = inner["properties"][inner_key].get("default") {
                assert_eq!(shown, default, "`{key}.{inner_key}`");
            }
        }
    }
}
