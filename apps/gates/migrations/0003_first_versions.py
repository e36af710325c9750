from django.db import migrations

# What a gate says becomes its first version; one that was switched off is retired and keeps it. On the way back a gate
# gets what is in force, or its newest version; earlier ones are lost with their table.
FORWARD = """
SELECT set_config('silas.platform', 'on', true);
INSERT INTO gates_gateversion
    (id, tenant_id, gate_id, number, "order", content, written_by, note, created_at)
SELECT gen_random_uuid(), tenant_id, id, 1, "order", jsonb_build_object(
        'on', "on",
        'after_step', after_step,
        'provider', provider,
        'type', type,
        'check', nullif(validator, ''),
        'config', config,
        'extract', nullif(extract, ''),
        'auto_approve', auto_approve,
        'require_approval', require_approval,
        'block', block,
        'allowed_values', allowed_values,
        'approval_values', approval_values,
        'on_block', on_block,
        'check_command', nullif(check_command, ''),
        'check_expect', check_expect,
        'promote_to_policy', promote_to_policy
    ), 'system', '', created_at FROM gates_gate;
UPDATE gates_gate SET newest = 1, status = CASE WHEN enabled THEN 'active' ELSE 'retired' END,
    active = CASE WHEN enabled THEN 1 END;
SELECT set_config('silas.platform', '', true);
"""
BACKWARD = """
SELECT set_config('silas.platform', 'on', true);
UPDATE gates_gate g SET
    enabled = g.active IS NOT NULL,
    "order" = v."order",
    "on" = v.content->>'on',
    after_step = (v.content->>'after_step')::smallint,
    provider = v.content->>'provider',
    type = v.content->>'type',
    validator = v.content->>'check',
    config = v.content->'config',
    extract = v.content->>'extract',
    auto_approve = nullif(v.content->'auto_approve', 'null'::jsonb),
    require_approval = nullif(v.content->'require_approval', 'null'::jsonb),
    block = nullif(v.content->'block', 'null'::jsonb),
    allowed_values = nullif(v.content->'allowed_values', 'null'::jsonb),
    approval_values = nullif(v.content->'approval_values', 'null'::jsonb),
    on_block = v.content->>'on_block',
    check_command = v.content->>'check_command',
    check_expect = nullif(v.content->'check_expect', 'null'::jsonb),
    promote_to_policy = (v.content->>'promote_to_policy')::boolean
FROM gates_gateversion v WHERE v.gate_id = g.id AND v.number = coalesce(g.active, g.newest);
SELECT set_config('silas.platform', '', true);
"""


class Migration(migrations.Migration):
    dependencies = [
        ('gates', '0002_versions'),
    ]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
