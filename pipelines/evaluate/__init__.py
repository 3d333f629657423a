"""The quality gate of rebuilds: does the new index find pages as well as the live one?"""
