//! `skill`: lists skills and loads one. A skill is a directory with instructions for a kind of work in `SKILL.md`. Once
//! loaded, a skill that lists allowed tools limits the session to them.

mod front_matter;
mod tool_names;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolgate_contract::{
    AllowedTools, Effect, ErrorCode, Hands, Permission, ResultForm, Risk, SkillCandidate, SkillOwner, Spec, Tool,
    ToolError,
};

use self::front_matter::FrontMatter;

/// Lists and loads skills.
pub struct SkillTool;

/// The skill.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// If left out, all skills are listed.
    #[serde(default)]
    name: Option<String>,
    /// Shows one of the files that the skill lists.
    #[serde(default)]
    file: Option<String>,
}

/// What a skill's front matter says.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SkillSummary {
    /// Its name.
    name: String,
    /// What it does and when to use it.
    description: String,
    /// Its owner.
    #[serde(rename = "shelf")]
    owner: SkillOwner,
}

/// A directory that isn't a valid skill.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UnusableSkill {
    /// Its path.
    path: String,
    /// What is wrong with it.
    reason: String,
}

/// The available skills, or the loaded one.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Output {
    /// The available skills.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skills: Vec<SkillSummary>,
    /// Directories that aren't valid skills, for the person to fix.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unusable: Vec<UnusableSkill>,
    /// The loaded skill's instructions, or the text of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// The loaded skill's directory, or the path of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Its other files, by relative path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<String>,
    /// The tools the skill allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<String>>,
    /// What that list means here.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_tools: Option<AllowedTools>,
}

impl Tool for SkillTool {
    type Args = Args;
    type Output = Output;

    const SPEC: Spec = Spec {
        name: "skill",
        version: "1.1.0",
        description: "Load instructions for a kind of work, before you begin it.",
        risk: Risk::Low,
        permissions: &[Permission::Agent],
        side_effects: &[],
        parallel: true,
    };

    const RESULT_FORM: ResultForm = ResultForm::Content;

    fn effects(&self, args: &Args) -> Vec<Effect> {
        vec![Effect::Skill { name: args.name.clone() }]
    }

    async fn run(&self, args: Args, hands: &dyn Hands) -> Result<Output, ToolError> {
        let directories = hands.blocking(|hands| hands.skills()).await?;
        match (args.name, args.file) {
            (None, None) => Ok(list(&directories)),
            (None, Some(_)) => Err(ToolError::invalid_args("`file` needs the `name` of its skill.")),
            (Some(name), None) => load(&name, &directories, hands),
            (Some(name), Some(file)) => show_file(&name, file, &directories, hands).await,
        }
    }
}

/// The programs that a skill says it requires: in its metadata, and as commands among its allowed tools.
pub fn skill_commands(skill: &SkillCandidate) -> Result<Vec<String>, ToolError> {
    let (facts, _) = read(skill)?;
    let tools = facts.allowed_tools.as_deref().map(tool_names::canonical_names).unwrap_or_default();
    let mut commands = facts.required_commands;
    commands.extend(tools.iter().filter_map(|tool| tool_names::program(tool)).map(str::to_owned));
    Ok(commands)
}

fn list(directories: &[SkillCandidate]) -> Output {
    let mut output = Output::default();
    for directory in directories {
        match read(directory) {
            Ok((facts, _)) => output.skills.push(SkillSummary {
                name: facts.name,
                description: facts.description,
                owner: directory.owner,
            }),
            Err(error) => output.unusable.push(UnusableSkill { path: directory.path.clone(), reason: error.message }),
        }
    }
    output
}

fn load(name: &str, directories: &[SkillCandidate], hands: &dyn Hands) -> Result<Output, ToolError> {
    let directory = find(name, directories)?;
    let (facts, body) = read(directory)?;
    let tools = facts.allowed_tools.as_deref().map(tool_names::canonical_names);
    let allowed_tools =
        tools.clone().map(|tools| hands.activate(directory, tool_names::with_agent_tools(tools))).transpose()?;
    Ok(Output {
        content: Some(body.to_owned()),
        path: Some(directory.path.clone()),
        files: directory.files.clone(),
        tools,
        allowed_tools,
        ..Output::default()
    })
}

/// Shows one of the files that a skill lists.
async fn show_file(
    name: &str,
    file: String,
    directories: &[SkillCandidate],
    hands: &dyn Hands,
) -> Result<Output, ToolError> {
    let directory = find(name, directories)?;
    if !directory.files.contains(&file) {
        let hint = match directory.files.is_empty() {
            true => "It has no other files than SKILL.md.".to_owned(),
            false => format!("Its files are: {}.", directory.files.join(", ")),
        };
        let message = format!("The skill `{name}` has no file `{file}`.");
        return Err(ToolError::new(ErrorCode::NotFound, message).with_hint(hint));
    }
    let path = format!("{}/{file}", directory.path);
    let skill = name.to_owned();
    let bytes = hands.blocking(move |hands| hands.skill_file(&skill, &file)).await?;
    let not_text = || ToolError::new(ErrorCode::IsBinary, format!("`{path}` is not a text file."));
    let content = String::from_utf8(bytes).map_err(|_| not_text())?;
    Ok(Output { content: Some(content), path: Some(path), ..Output::default() })
}

/// The skill with this name.
pub(crate) fn find<'a>(name: &str, directories: &'a [SkillCandidate]) -> Result<&'a SkillCandidate, ToolError> {
    directories.iter().find(|directory| directory.name == name).ok_or_else(|| {
        let known: Vec<&str> = directories.iter().map(|directory| directory.name.as_str()).collect();
        let hint = match known[..] {
            [] => "There are no skills here. Project skills count once the person has run `toolgate trust`.".into(),
            _ => format!("The skills here are: {}.", known.join(", ")),
        };
        ToolError::new(ErrorCode::NotFound, format!("There is no skill `{name}`.")).with_hint(hint)
    })
}

/// The skill's checked front matter, and its instructions.
pub(crate) fn read(directory: &SkillCandidate) -> Result<(FrontMatter, &str), ToolError> {
    let text = directory.text.as_ref().map_err(Clone::clone)?;
    front_matter::read(text, &directory.name).map_err(|fault| {
        ToolError::new(ErrorCode::IoError, format!("The skill `{}` can't be used: {fault}", directory.name))
            .with_hint(format!("Ask the person to fix `{}/SKILL.md`, or work without it.", directory.path))
    })
}
