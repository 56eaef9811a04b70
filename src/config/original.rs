//! Keys of the original agent's `config.yaml` that this server knows of and
//! does not use. A file that holds them loads, and the start names them; a key
//! that is neither ours nor in these lists is taken for a slip and refused.

/// Whole sections and single keys at the top of the file.
#[rustfmt::skip]
pub(super) const TOP_LEVEL: &[&str] = &[
    "_config_version", "attachments", "auxiliary", "bedrock", "browser", "cloud",
    "compression", "context", "credential_pool_strategies", "curator", "custom_providers", "dashboard",
    "database", "debug", "discord", "display", "email", "fallback_model", "fallback_providers",
    "feishu", "gateway", "goals", "group_sessions_per_user", "homeassistant", "honcho",
    "hooks_auto_accept", "human_delay", "image_gen", "kanban", "known_plugin_toolsets", "logging", "lsp",
    "matrix", "mattermost", "max_concurrent_sessions", "mcp", "mcp_servers", "model_aliases",
    "model_catalog", "moa", "network", "onboarding", "openrouter", "paste_collapse_threshold", "personalities",
    "platforms", "prefill_messages_file", "privacy", "prompt_caching", "provider_routing", "providers",
    "quick_commands", "runtime", "secrets", "session_reset", "sessions", "signal", "slack",
    "smart_model_routing", "streaming", "stt", "telegram", "telemetry", "thread_sessions_per_user", "timeouts",
    "timezone", "tool_budget", "tool_search", "toolsets", "tts", "updates",
    "video_gen", "vision", "voice", "wake_word", "web", "whatsapp", "worktree", "worktree_sync", "x_search",
];

/// How the original bounds and tidies its store of all sessions.
#[rustfmt::skip]
pub(super) const CHECKPOINTS: &[&str] = &[
    "auto_prune", "delete_orphans", "max_total_size_mb", "min_interval_hours", "retention_days",
];

/// Under `model`, when it is a section there: the account beside the name.
#[rustfmt::skip]
pub(super) const MODEL: &[&str] = &[
    "api_key", "api_mode", "auth_mode", "base_url", "context_length", "default_headers", "entra", "extra_headers",
    "max_tokens", "ollama_num_ctx", "openai_runtime", "provider", "streaming",
];

#[rustfmt::skip]
pub(super) const AGENT: &[&str] = &[
    "auto_recovery_cycles", "build_wait_timeout", "coding_instructions", "cron_drain_timeout",
    "disabled_toolsets", "fast_auto_seconds", "gateway_auto_continue_freshness", "gateway_notify_interval",
    "gateway_timeout", "gateway_timeout_warning", "gateway_turn_lease_timeout", "image_input_mode",
    "max_verify_nudges", "personalities", "reasoning_effort", "reasoning_overrides", "restart_after_turn_timeout",
    "restart_drain_timeout", "sanitizer_heal_escalation_threshold", "service_tier", "session_stall_timeout",
    "system_prompt", "tool_use_enforcement", "verbose", "verify_guidance", "verify_on_stop",
];

#[rustfmt::skip]
pub(super) const DELEGATION: &[&str] = &[
    "api_key", "api_mode", "base_url", "inherit_mcp_toolsets", "provider", "reasoning_effort",
];

pub(super) const CRON: &[&str] = &["max_parallel_jobs", "provider", "wrap_response"];

pub(super) const APPROVALS: &[&str] = &["destructive_slash_confirm", "gateway_timeout", "mcp_reload_confirm"];

pub(super) const SECURITY: &[&str] = &["allow_private_urls", "redact_secrets", "website_blocklist"];

/// Logins at model vendors, which the original keeps under our section's name.
pub(super) const AUTH: &[&str] = &["adopt_external_logins", "codex_login_flow"];

#[rustfmt::skip]
pub(super) const MEMORY: &[&str] = &[
    "flush_min_turns", "memory_enabled", "nudge_interval", "provider", "user_profile_enabled",
];

pub(super) const SKILLS: &[&str] = &[
    "config",
    "creation_nudge_interval",
    "inline_shell",
    "inline_shell_timeout",
    "platform_disabled",
    "template_vars",
];

#[rustfmt::skip]
pub(super) const TERMINAL: &[&str] = &[
    "auto_source_bashrc", "container_cpu", "container_disk", "container_memory", "container_persistent",
    "cwd", "daytona_image", "docker_env", "docker_extra_args", "docker_forward_env", "docker_image",
    "docker_mount_cwd_to_workspace", "docker_network", "docker_orphan_reaper", "docker_persist_across_processes",
    "docker_run_as_host_user", "docker_volumes", "font_family", "home_mode", "lifetime_seconds", "modal_image",
    "modal_mode", "persistent_shell", "sandbox_dir", "scratch_dir", "shell_init_files", "singularity_image",
    "ssh_host", "ssh_key", "ssh_persistent", "ssh_port", "ssh_user", "sudo_password", "vercel_runtime",
];

/// The output of commands, whose bound this server does not take from there.
pub(super) const TOOL_OUTPUT: &[&str] = &["max_bytes"];

/// Doors of the original under `platform_toolsets` that this server lacks.
#[rustfmt::skip]
pub(super) const PLATFORMS: &[&str] = &[
    "acp", "bluebubbles", "cli", "cron", "dingtalk", "discord", "email", "feishu", "gateway", "google_chat",
    "homeassistant", "matrix", "mattermost", "qqbot", "signal", "slack", "sms", "teams", "telegram", "tui",
    "webhook", "wecom", "wecom_callback", "weixin", "whatsapp", "yuanbao",
];
