from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('guard', '0008_reworded_labels'),
    ]

    operations = [
        migrations.AlterField(
            model_name='spendentry',
            name='intent',
            field=models.CharField(choices=[('retrieve_chunks', 'Retrieve Chunks'), ('run_skill', 'Run Skill'), ('run_playbook', 'Run Playbook'), ('propose_precedent', 'Propose Precedent'), ('propose_memory', 'Propose Memory'), ('emit_finding', 'Emit Finding'), ('emit_artifact', 'Emit Artifact'), ('notify', 'Notify'), ('converse', 'Converse'), ('read_file', 'Read File'), ('plan', 'Plan'), ('call_mcp_tool', 'Call Mcp Tool'), ('web_search', 'Web Search'), ('run_connection', 'Run Connection')], max_length=24),
        ),
        migrations.AlterField(
            model_name='toolcall',
            name='intent',
            field=models.CharField(choices=[('retrieve_chunks', 'Retrieve Chunks'), ('run_skill', 'Run Skill'), ('run_playbook', 'Run Playbook'), ('propose_precedent', 'Propose Precedent'), ('propose_memory', 'Propose Memory'), ('emit_finding', 'Emit Finding'), ('emit_artifact', 'Emit Artifact'), ('notify', 'Notify'), ('converse', 'Converse'), ('read_file', 'Read File'), ('plan', 'Plan'), ('call_mcp_tool', 'Call Mcp Tool'), ('web_search', 'Web Search'), ('run_connection', 'Run Connection')], max_length=24),
        ),
    ]
