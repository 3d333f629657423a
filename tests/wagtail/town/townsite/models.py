"""Page types: a stream, rich text with tags, one that says itself what it is, one that stays out, one that breaks."""

from typing import Any

from django.db import models
from modelcluster.contrib.taggit import ClusterTaggableManager
from modelcluster.fields import ParentalKey
from taggit.models import TaggedItemBase
from wagtail import blocks
from wagtail.admin.panels import FieldPanel
from wagtail.fields import RichTextField, StreamField
from wagtail.models import Page
from wagtail.search import index


class Price(blocks.StructBlock):
    what = blocks.CharBlock()
    euros = blocks.IntegerBlock()

    class Meta:
        template = "townsite/blocks/price.html"


class ArticlePage(Page):
    body = StreamField(
        [("heading", blocks.CharBlock()), ("text", blocks.RichTextBlock()), ("price", Price())], blank=True
    )
    note = models.TextField(blank=True)  # for editors: no search field, so it never leaves

    template = "townsite/page.html"
    content_panels = [*Page.content_panels, FieldPanel("body"), FieldPanel("note")]
    search_fields = [*Page.search_fields, index.SearchField("body")]


class NewsTag(TaggedItemBase):
    content_object = ParentalKey("townsite.NewsPage", on_delete=models.CASCADE, related_name="tagged_items")


class NewsPage(Page):
    intro = models.CharField(max_length=250, blank=True)
    text = RichTextField(blank=True)
    tags = ClusterTaggableManager(through=NewsTag, blank=True)

    template = "townsite/page.html"
    content_panels = [*Page.content_panels, FieldPanel("intro"), FieldPanel("text"), FieldPanel("tags")]


class OwnWordsPage(Page):
    """Overrides what Pagewire gets."""

    hidden = models.BooleanField(default=False)

    template = "townsite/page.html"

    def pagewire_document(self) -> dict[str, Any] | None:
        if self.hidden:
            return None
        if "unspeakable" in self.title:
            raise RuntimeError("a template that fails")
        return {"title": self.title.upper(), "content": f"<p>In our own words: {self.title}.</p>", "keywords": ["own"]}


class InternalPage(Page):
    """Never leaves."""

    template = "townsite/page.html"
    pagewire_document = None
