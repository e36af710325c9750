"""What does axe find wrong with an open page?"""

from __future__ import annotations

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.async_api import Page

# Whoever asks for more than violations pays for a selector of each element that is well.
_ASKED = {"resultTypes": ["violations"]}
# Every rule but those of level AAA: also the experimental ones, which axe leaves out by itself. Left out is
# focus-order-semantics, which forbids the focus that scrollable-region-focusable demands of a wide table.
_RUN = """async options => {
  const left = ["focus-order-semantics"];
  const tagged = (rule, end) => rule.tags.some((tag) => tag.endsWith(end));
  const rules = axe.getRules().filter((rule) => !tagged(rule, "aaa") && !tagged(rule, "deprecated"));
  const enabled = rules.filter((rule) => !left.includes(rule.ruleId)).map((rule) => [rule.ruleId, { enabled: true }]);
  return (await axe.run({ ...options, rules: { ...Object.fromEntries(enabled), ...options.rules } })).violations;
}"""


async def violations(page: Page, **options: Any) -> list[dict[str, Any]]:
    """Each with `id` and `nodes`, in axe's own shape; options are those of `axe.run`.

    A document is told half a megabyte of axe once; nothing but what is wrong travels back.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE_SCRIPT)
    found: list[dict[str, Any]] = await page.evaluate(_RUN, {**_ASKED, **options})
    return found
