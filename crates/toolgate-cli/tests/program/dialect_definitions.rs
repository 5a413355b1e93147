//! Definitions that providers accept: `toolgate tools --format` for every dialect, held against each provider's documented limits.

use regex::Regex;
use serde_json::Value;

use crate::world::{PROGRAM, World};

fn definitions(world: &World, dialect: &str, format: &str, strict: bool) -> Vec<Value> {
    let mut args = vec!["tools", "--all", "--dialect", dialect, "--format", format, "--json"];
    args.extend(strict.then_some("--strict"));
    // One dialect is configured by the environment.
    let mut command = world.command(PROGRAM);
    let said = command.args(&args).env("AUTONOUS_TOOL_ALLOWED_ROOTS", world.workspace()).output().unwrap();
    serde_json::from_slice(&said.stdout).unwrap_or_else(|fault| panic!("{dialect}: {fault}: {said:?}"))
}

fn dialects(world: &World) -> Vec<String> {
    let listed = world.run(&["dialects", "--json"]);
    let name = |line: &str| serde_json::from_str::<Value>(line).unwrap()["name"].as_str().unwrap().to_owned();
    listed.out.lines().map(name).chain(["native".to_owned()]).collect()
}

/// Every schema inside of a schema, itself included, and how deep each is.
fn schemas(schema: &Value, depth: usize, found: &mut Vec<(usize, Value)>) {
    let Some(fields) = schema.as_object() else { return };
    found.push((depth, schema.clone()));
    for (keyword, value) in fields {
        match keyword.as_str() {
            "properties" | "$defs" => {
                value.as_object().unwrap().values().for_each(|inner| schemas(inner, depth + 1, found));
            }
            "anyOf" | "oneOf" | "allOf" => {
                value.as_array().unwrap().iter().for_each(|inner| schemas(inner, depth, found));
            }
            "items" => schemas(value, depth + 1, found),
            _ => {}
        }
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("`{field}` is a text: {value}"))
}

#[test]
fn anthropic_accepts_every_definition() {
    let world = World::new();
    let (name, argument) =
        (Regex::new("^[a-zA-Z0-9_-]{1,128}$").unwrap(), Regex::new("^[a-zA-Z0-9_.-]{1,64}$").unwrap());
    for dialect in dialects(&world) {
        for tool in definitions(&world, &dialect, "anthropic", false) {
            assert!(name.is_match(text(&tool, "name")), "{tool}");
            let schema = &tool["input_schema"];
            assert_eq!(schema["type"], "object", "{tool}");
            assert!(["oneOf", "anyOf", "allOf"].iter().all(|word| schema.get(*word).is_none()), "{tool}");
            let arguments = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
            arguments.for_each(|name| assert!(argument.is_match(name), "{name} of {tool}"));
            assert!(
                tool.as_object()
                    .unwrap()
                    .keys()
                    .all(|key| ["name", "description", "input_schema"].contains(&key.as_str()))
            );
        }
    }
}

#[test]
fn openai_accepts_every_definition_and_apply_patch_is_a_custom_tool_with_its_grammar() {
    let world = World::new();
    let name = Regex::new("^[a-zA-Z0-9_-]{1,64}$").unwrap();
    for dialect in dialects(&world) {
        for tool in definitions(&world, &dialect, "openai-responses", false) {
            assert!(name.is_match(text(&tool, "name")) && text(&tool, "description").len() <= 1024, "{tool}");
            match text(&tool, "type") {
                "function" => {
                    assert_eq!((&tool["parameters"]["type"], &tool["strict"]), (&"object".into(), &false.into()))
                }
                "custom" => {
                    assert_eq!((text(&tool["format"], "type"), text(&tool["format"], "syntax")), ("grammar", "lark"))
                }
                other => panic!("{other}: {tool}"),
            }
        }
        for tool in definitions(&world, &dialect, "openai", false) {
            let kind = text(&tool, "type");
            assert!(name.is_match(text(&tool[kind], "name")) && tool.as_object().unwrap().len() == 2, "{tool}");
        }
    }
    let codex = definitions(&world, "codex", "openai-responses", false);
    let patch = codex.iter().find(|tool| tool["name"] == "apply_patch").unwrap();
    assert!(patch["type"] == "custom" && text(&patch["format"], "definition").contains("*** Begin Patch"), "{patch}");
}

/// The documented subset for strict schemas: every object closed, every property required, no other keywords, ten levels.
#[test]
fn strict_definitions_are_strict() {
    let keywords = [
        "$defs",
        "$ref",
        "type",
        "title",
        "description",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "pattern",
        "anyOf",
        "properties",
        "additionalProperties",
        "required",
    ];
    let world = World::new();
    let mut count = 0;
    for dialect in dialects(&world) {
        for tool in definitions(&world, &dialect, "openai-responses", true) {
            if tool["strict"] != true {
                continue;
            }
            count += 1;
            let mut all = Vec::new();
            schemas(&tool["parameters"], 1, &mut all);
            for (depth, schema) in all {
                let fields = schema.as_object().unwrap();
                assert!(depth <= 10 && fields.keys().all(|keyword| keywords.contains(&keyword.as_str())), "{schema}");
                if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
                    let required: Vec<&str> =
                        schema["required"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
                    assert_eq!(required, properties.keys().map(String::as_str).collect::<Vec<_>>(), "{tool}");
                    assert_eq!(schema["additionalProperties"], false, "{tool}");
                }
            }
        }
    }
    assert!(count > 40, "{count} tools can be strict");
}

#[test]
fn gemini_accepts_every_definition() {
    let keywords = [
        "$id",
        "$defs",
        "$ref",
        "$anchor",
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "oneOf",
        "properties",
        "additionalProperties",
        "required",
    ];
    let world = World::new();
    let name = Regex::new("^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$").unwrap();
    for dialect in dialects(&world) {
        for tool in definitions(&world, &dialect, "gemini", false) {
            assert!(name.is_match(text(&tool, "name")) && !text(&tool, "description").is_empty(), "{tool}");
            let mut all = Vec::new();
            schemas(&tool["parametersJsonSchema"], 1, &mut all);
            let known =
                |schema: &Value| schema.as_object().unwrap().keys().all(|word| keywords.contains(&word.as_str()));
            assert!(all.iter().all(|(_, schema)| known(schema)), "{tool}");
        }
    }
}
